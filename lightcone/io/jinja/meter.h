// Limits of the cost of rendering a template. A template is a program from a file. It may loop forever, double a text
// forty times or call itself, and must end in an Error in each case.
#pragma once

#include <cstddef>
#include <string>

#include "lightcone/base/error.h"

namespace lc::jinja {

// The reason why rendering fails, without the line. Template adds the line and throws the Error.
struct Fault {
  std::string what;
};
// Throws a Fault.
template <class... Ts>
[[noreturn]] void fail(const Ts&... what) {
  throw Fault{str_cat(what...)};
}

// The limits of one rendering.
struct Limits {
  std::size_t steps = 10'000'000;      // each takes some tens of nanoseconds
  std::size_t bytes = 16u << 20;       // allocated while rendering in total, whether freed or not
  std::size_t bytes_each_input = 256;  // additional bytes for each byte of the variables
};

constexpr int kDeepest = 250;       // depth of nested evaluations, calls of macros included
constexpr int kDeepestNode = 150;   // depth of nested brackets and blocks in the text of a template
constexpr int kDeepestValue = 100;  // depth of nested lists
constexpr std::size_t kLongestTemplate = 256u << 10;

// Counts the steps and bytes of one rendering.
class Meter {
 public:
  explicit Meter(const Limits& l) : steps_(l.steps), bytes_(l.bytes) {}
  void allow(std::size_t bytes) { bytes_ += bytes; }
  // Counts n steps before they are done. Throws Fault beyond the limit.
  void step(std::size_t n = 1) {
    if (n > steps_) fail("the template takes too many steps");
    steps_ -= n;
  }
  // Counts bytes before they are allocated, and the steps to fill them. Throws Fault beyond the limit.
  void make(std::size_t bytes) {
    if (bytes > bytes_) fail("the template makes more text than it may");
    bytes_ -= bytes;
    step(bytes / 64 + 1);
  }
  void make(std::size_t count, std::size_t each) {
    if (each != 0 && count > bytes_ / each) fail("the template makes more text than it may");
    make(count * each);
  }
  // Counts the steps to read this many bytes.
  void read(std::size_t bytes) { step(bytes / 64 + 1); }

 private:
  std::size_t steps_, bytes_;
};

// Counts the depth of nested calls during its lifetime. Throws Fault beyond the limit.
class Level {
 public:
  explicit Level(int& depth, int most = kDeepest) : depth_(depth) {
    if (++depth_ > most) {
      --depth_;
      fail("too much within each other");
    }
  }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

}  // namespace lc::jinja
