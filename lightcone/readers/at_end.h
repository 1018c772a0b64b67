// Readers collect problems and go on, so that what they entered has to be left after an Error, too.
#pragma once

#include <utility>

namespace lc::readers {

// Runs a function at the end of a scope, also after an Error.
template <class F>
class AtEnd {
 public:
  explicit AtEnd(F f) : f_(std::move(f)) {}
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;
  ~AtEnd() { f_(); }

 private:
  F f_;
};

}  // namespace lc::readers
