// Decodes base64, in which goldens hold binary files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

inline std::string from_base64(const std::string& s) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : s) {
    const auto v = std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c);
    if (v == std::string_view::npos) break;
    bits = bits << 6 | static_cast<std::uint32_t>(v), held += 6;
    if (held >= 8) held -= 8, out += static_cast<char>(bits >> held & 0xFF);
  }
  return out;
}
