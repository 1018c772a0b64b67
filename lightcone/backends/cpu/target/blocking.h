// How much of a product or a convolution is worked on at a time, so that it stays in a cache: derived from a machine's
// profile, as in "Analytical Modeling Is Enough for High-Performance BLIS" (Low et al., 2016).
//
// None of it decides in which order numbers are added. What does is fixed and stands where it is used: the k of a tile
// (kTileDepth), the taps that are multiplied before a sum is stored (depth_step, NhwcTiles), and the tiles of a block
// of Winograd's, which decide where numbers that cannot be mixed make the direct way necessary.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lightcone/codegen/machine.h"

namespace lc::backends::cpu {

class Blocking {
 public:
  explicit constexpr Blocking(const Machine& m = {})
      : l1_(std::clamp<std::int64_t>(m.l1, 8 << 10, 256 << 10)),
        l2_(std::clamp<std::int64_t>(m.l2, 64 << 10, 8 << 20)),
        streams_(m.streams),
        second_level_(m.fetch_level == 2) {}

  std::int64_t l2() const { return l2_; }

  // A task of a product multiplies `rows` rows of A, `depth` of them at a time, with `columns` columns of B, strip by
  // strip. A third of the second level is for that of A, a third for C, which is added to depth by depth; the rest is
  // for two strips of B, this one and the next.
  std::int64_t rows(std::int64_t depth) const { return l2_ / 3 / (4 * depth); }
  std::int64_t columns(std::int64_t rows) const { return std::max<std::int64_t>(16, l2_ / 3 / (4 * rows) / 16 * 16); }

  // Numbers of four bytes that a worker keeps beside what streams past them: half the second level.
  std::int64_t l2_budget_floats() const { return l2_ / 2 / 4; }
  // What all workers share lies in the last level: some times a worker's own.
  std::int64_t llc_bytes(std::int64_t times) const { return times * l2_; }
  // Numbers that stay in the first level while as many again pass through it.
  std::int64_t l1_budget_floats() const { return l1_ / 2 / 4; }

  // In which a worker reads the weights of a product of one row.
  std::int64_t streams() const { return streams_; }
  // Where what it reads next comes to, if its codes have eight bits.
  bool into_second_level() const { return second_level_; }

  friend bool operator==(const Blocking&, const Blocking&) = default;

 private:
  std::int64_t l1_, l2_, streams_;
  bool second_level_;
};

}  // namespace lc::backends::cpu
