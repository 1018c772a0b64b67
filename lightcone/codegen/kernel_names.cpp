#include "lightcone/codegen/kernel_names.h"

#include <array>
#include <cstdio>

namespace lc::ir {

const std::string& KernelNames::of(const std::string& text) {
  const auto [it, fresh] = names_.try_emplace(text);
  if (!fresh) return it->second;
  std::array<char, 24> hex;
  std::snprintf(hex.data(), hex.size(), "k_%016zx", hash_(text));
  std::string name = hex.data();
  for (int n = 2; !taken_.insert(name).second; ++n) name = hex.data() + ("_" + std::to_string(n));
  return it->second = std::move(name);
}

}  // namespace lc::ir
