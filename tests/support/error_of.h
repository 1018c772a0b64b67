// Helpers that check the message of a call that should fail.
#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "lightcone/base/error.h"

namespace lc {

inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// Checks the whole message, and that it names a line of `file`, the user's source (the test). `file` is empty for
// operators, which have no line.
inline void expect_error(const std::function<void()>& f, const std::string& sentence, const std::string& file) {
  try {
    f();
    ADD_FAILURE() << "no error: " << sentence;
  } catch (const Error& e) {
    const std::string what = e.what();
    EXPECT_EQ(what.substr(0, what.find(" (at ")), sentence);
    EXPECT_NE(what.find(file.empty() ? "" : " (at " + file + ":"), std::string::npos)
        << what << " lacks the caller's line";
  }
}

// For EXPECT_PRED2(contains, text, part), which prints both strings.
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace lc
