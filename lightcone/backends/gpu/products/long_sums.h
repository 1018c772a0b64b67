// Products over many k: each thread's sums c_ go into second ones after some hundreds of additions and begin anew, as
// long sums do everywhere (codegen/schedule/blocks.cpp). Those are touched so seldom that they need not be registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "lightcone/backends/gpu/products/kernels.h"

namespace lc::backends::gpu {

inline constexpr std::int64_t kLongSum = 1 << 14;  // k of a product that is added up so, at least
// That are added up one after the other then: by a thread, by tensor cores.
inline constexpr std::int64_t kMostByThread = 256, kMostByCores = 512;

class LongSums {
 public:
  // `count` sums c_[i]; of `inner` each where they are c_[i][e].
  LongSums(const ProductTexts& t, int count, int inner = 0)
      : any_(!t.p.exact && product(t.p.sum).bounds().hi > kLongSum), count_(count), inner_(inner) {}
  explicit operator bool() const { return any_; }
  void begin(Writer& w) const {
    if (!any_) return;
    const std::string n = std::to_string(count_ * std::max(inner_, 1));
    w.line("float blocks_[" + n + "], lost_[" + n + "];");
    w.line("LC_UNROLL");
    w.line("for (int i = 0; i < " + n + "; ++i) blocks_[i] = lost_[i] = 0.0f;");
  }
  // Behind a step of the loop, which takes `step` of k. `from`: how many were taken before; a block is as many as
  // `block`, both powers of two. `before` stands before the block's end.
  void end_step(Writer& w, const std::string& from, std::int64_t step, std::int64_t block,
                const std::string& before = "") const {
    if (!any_) return;
    w.open("if (((" + from + ") & " + std::to_string(block - 1) + ") + " + std::to_string(step) +
           " >= " + std::to_string(block) + ") {");
    if (!before.empty()) w.line(before);
    each(w, end_block);
    w.close();
  }
  void finish(Writer& w) const {
    if (!any_) return;
    each(w, [](const std::string& n, const std::string& c) {
      return "{ " + end_block(n, c) + " " + c + " = blocks_[" + n + "] + lost_[" + n + "]; }";
    });
  }

 private:
  static std::string end_block(const std::string& n, const std::string& c) {
    return "LC_BLOCK(blocks_[" + n + "], lost_[" + n + "], " + c + ");";
  }
  template <class F>
  void each(Writer& w, const F& f) const {
    w.line("LC_UNROLL");
    w.open("for (int i = 0; i < " + std::to_string(count_) + "; ++i) {");
    if (inner_ == 0) w.line(f("i", "c_[i]"));
    for (int e = 0; e < inner_; ++e) {
      const std::string at = std::to_string(e);
      w.line(f("i * " + std::to_string(inner_) + " + " + at, "c_[i][" + at + "]"));
    }
    w.close();
  }
  bool any_;
  int count_, inner_;
};

}  // namespace lc::backends::gpu
