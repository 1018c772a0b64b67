#include "lightcone/codegen/simt/filled.h"

namespace lc::codegen::simt {

std::string filled(std::string_view text, Names names) {
  std::string s(text);
  for (const auto& [name, value] : names)
    for (std::size_t at = 0; (at = s.find("$" + std::string(name), at)) != std::string::npos; at += value.size())
      s.replace(at, name.size() + 1, value);
  return s;
}

}  // namespace lc::codegen::simt
