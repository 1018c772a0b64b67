// SHA-256 by a library of the system's, loaded when it is first needed: nothing is linked for it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lc::cache {

class Sha256 {
 public:
  // Is there a library? Without one nothing else may be called.
  static bool available();
  Sha256();
  // Parts are told apart: "ab", "c" is not "a", "bc".
  Sha256& add(std::string_view part);
  std::string hex();  // 64 digits; nothing may be added afterwards

  static constexpr std::size_t kDigits = 64;

 private:
  alignas(16) unsigned char state_[256];  // the libraries' own need 112 and 208 bytes
};

}  // namespace lc::cache
