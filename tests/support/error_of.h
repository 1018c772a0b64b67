// What a call that should fail says.
#pragma once

#include <functional>
#include <string>

#include "lightcone/core/error.h"

namespace lc {

inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// For EXPECT_PRED2(contains, text, part), which prints both.
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace lc
