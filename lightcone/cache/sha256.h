// SHA-256 by a system library that is loaded on first use, so nothing is linked for it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lc::cache {

// Hashes a sequence of parts.
class Sha256 {
 public:
  // Returns whether there is a library. Without one, no other function may be called.
  static bool available();
  Sha256();
  // Adds a part. Boundaries between parts count: "ab", "c" differs from "a", "bc".
  Sha256& add(std::string_view part);
  std::string hex();  // 64 digits; call it once, after all parts

  static constexpr std::size_t kDigits = 64;

 private:
  alignas(16) unsigned char state_[256];  // the libraries need 112 and 208 bytes
};

}  // namespace lc::cache
