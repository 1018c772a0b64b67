// What rendering a template may cost. A template is a program that came with a file: it may loop for ever, double a
// text forty times or call itself, and must end in an Error all the same.
#pragma once

#include <cstddef>
#include <string>

#include "lightcone/core/error.h"

namespace lc::jinja {

// Why a template cannot go on, without the line; Template adds that and throws the Error.
struct Fault {
  std::string what;
};
template <class... Ts>
[[noreturn]] void fail(const Ts&... what) {
  throw Fault{str_cat(what...)};
}

struct Limits {
  std::size_t steps = 10'000'000;      // some tens of nanoseconds each
  std::size_t bytes = 16u << 20;       // of everything that is made while rendering, whether it still lives or not
  std::size_t bytes_each_input = 256;  // and as many for each byte of the variables
};

constexpr int kDeepest = 250;       // of what is evaluated within each other, calls of macros included
constexpr int kDeepestNode = 150;   // of a template's text: brackets in brackets, blocks in blocks
constexpr int kDeepestValue = 100;  // lists within lists
constexpr std::size_t kLongestTemplate = 256u << 10;

class Meter {
 public:
  explicit Meter(const Limits& l) : steps_(l.steps), bytes_(l.bytes) {}
  void allow(std::size_t bytes) { bytes_ += bytes; }
  // So much work, before it is done.
  void step(std::size_t n = 1) {
    if (n > steps_) fail("the template takes too many steps");
    steps_ -= n;
  }
  // So many bytes, before they are allocated; filling them is work, too.
  void make(std::size_t bytes) {
    if (bytes > bytes_) fail("the template makes more text than it may");
    bytes_ -= bytes;
    step(bytes / 64 + 1);
  }
  void make(std::size_t count, std::size_t each) {
    if (each != 0 && count > bytes_ / each) fail("the template makes more text than it may");
    make(count * each);
  }
  // A look at so many bytes.
  void read(std::size_t bytes) { step(bytes / 64 + 1); }

 private:
  std::size_t steps_, bytes_;
};

// Counts how deep calls are nested while it lives.
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
