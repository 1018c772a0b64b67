// Offsets of many iterations at once. Each loop of a nest is at a chunk of its iterations: lane (j0, j1, ..., jk), with
// the last index fastest, is iteration (v0 + j0, ..., vk + jk).
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

// The current chunk of each loop, and the number of lanes within it.
struct LoopPositions {
  struct At {
    int parent = -1;  // the enclosing loop
    int depth = 1;    // number of enclosing loops, itself included
    std::int64_t first = 0, chunk = 1, lanes = 1;
  };
  std::vector<At> loops;
  std::int64_t lanes(int loop) const { return loop < 0 ? 1 : loops[static_cast<std::size_t>(loop)].lanes; }
  int depth(int loop) const { return loop < 0 ? 0 : loops[static_cast<std::size_t>(loop)].depth; }
};

// A Dim with known sizes: base + the sum of `along` times the symbol of each loop + non-linear terms.
struct Offset {
  std::int64_t base = 0;
  std::vector<std::int64_t> along;
  struct Rest {
    std::int64_t coefficient;
    std::vector<const Dim::Atom*> factors;
  };
  std::vector<Rest> rest;
  int deepest = -1;  // deepest loop that it depends on
  bool linear() const { return rest.empty(); }
  bool constant() const { return deepest < 0; }
};

class Indices {
 public:
  Indices(const Kernel& k, const LoopPositions& place, const std::int64_t* n);

  Offset known(const Dim& d) const;
  std::int64_t number(const Dim& d) const;  // for a Dim without loop symbols; 0 on division by zero
  // Returns the linear part at lane 0 of the loop.
  std::int64_t first(const Offset& o, int loop) const;
  // Returns the complete value at each lane of the loop. The pointer is valid until release().
  const std::int64_t* lanes(const Offset& o, int loop);
  void release() { used_ = 0; }

  // Splits the lanes into runs in which the linear part has a constant step, and calls f(lane, count, offset, step) for
  // each. No run crosses from one lane of the loop `apart` to the next; each of these adds `more`.
  template <class F>
  void runs(const Offset& o, int loop, int apart, std::int64_t more, const F& f) const {
    Axis axes[kMaxDepth];
    const int n = axes_of(o, loop, apart, more, axes);
    std::int64_t at[kMaxDepth] = {}, offset = first(o, loop);
    const std::int64_t count = axes[n - 1].count, all = place_.lanes(loop);
    for (std::int64_t lane = 0; lane < all; lane += count) {
      f(lane, count, offset, axes[n - 1].step);
      for (int a = n - 2; a >= 0; --a) {
        offset += axes[a].step;
        if (++at[a] < axes[a].count) break;
        offset -= axes[a].step * axes[a].count;
        at[a] = 0;
      }
    }
  }

 private:
  static constexpr int kMaxDepth = 64;
  struct Axis {
    std::int64_t count, step;
  };
  int axes_of(const Offset& o, int loop, int apart, std::int64_t more, Axis* axes) const;
  std::int64_t* scratch(int loop);
  const std::int64_t* repeated(const std::int64_t* outer, int from, int loop);
  const std::int64_t* factor(const Dim::Atom* a, int loop);
  int loop_of(const Dim::Atom& symbol) const;
  int deepest(const Dim::Atom* a) const;
  int deeper(int a, int b) const { return place_.depth(a) > place_.depth(b) ? a : b; }

  const Kernel& k_;
  const LoopPositions& place_;
  Bindings sizes_;
  std::map<const Dim::Atom*, std::pair<Offset, Offset>> operands_;  // operands of atoms
  std::deque<std::vector<std::int64_t>> scratch_;
  std::size_t used_ = 0;
};

}  // namespace lc::codegen
