// Converts hexadecimal text to bytes.
#pragma once

#include <string>
#include <string_view>

namespace lc::test {

inline std::string unhex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string s;
  for (std::size_t k = 0; k + 1 < hex.size(); k += 2) s += static_cast<char>(digit(hex[k]) * 16 + digit(hex[k + 1]));
  return s;
}

}  // namespace lc::test
