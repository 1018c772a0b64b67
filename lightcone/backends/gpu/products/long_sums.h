// Products over many k: after some hundreds of additions, each thread adds its sums c_ to second sums and begins anew,
// as long sums do everywhere (codegen/schedule/blocks.cpp). The second sums are used so seldom that they need not be
// registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "lightcone/backends/gpu/products/kernels.h"

namespace lc::backends::gpu {

inline constexpr std::int64_t kLongSum = 1 << 14;  // length of a sum that is added up this way, at least
// Additions in a row of a thread, and of tensor cores, before the sums are added to the second ones.
inline constexpr std::int64_t kMostByThread = 256, kMostByCores = 512;

class LongSums {
 public:
  // Takes `count` sums c_[i], or, if `inner` is not 0, `count` times `inner` sums c_[i][e].
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
  // Ends a step of the loop, which adds `step` of k; `from` is how many were added previously. The sums begin anew
  // after `block` of k; both are powers of two. The line `before` is written before that.
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
