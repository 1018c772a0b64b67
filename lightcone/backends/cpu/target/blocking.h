// Block sizes of products and convolutions, chosen so that the working set fits in a cache level. They are derived from
// the machine profile as in "Analytical Modeling Is Enough for High-Performance BLIS" (Low et al., 2016).
//
// These sizes do not affect the order in which numbers are added. The sizes that do are constants, defined where they
// are used: the k of a tile (kTileDepth), the taps that are multiplied before a sum is stored (depth_step, NhwcTiles),
// and the tiles of a Winograd block, which determine where infinities, NaNs and huge values force the direct algorithm.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/codegen/machine.h"

namespace lc::backends::cpu {

// Block sizes for one machine, whose caches are clamped to plausible sizes.
class Blocking {
 public:
  explicit constexpr Blocking(const Machine& m = {})
      : caches_{std::clamp<std::int64_t>(m.l1, 8 << 10, 256 << 10), std::clamp<std::int64_t>(m.l2, 64 << 10, 8 << 20),
                m.streams, m.fetch_level == 2} {}
  explicit constexpr Blocking(const CacheSizes& clamped) : caches_(clamped) {}

  const CacheSizes& caches() const { return caches_; }
  // Bytes of a core's L2.
  std::int64_t l2() const { return caches_.l2; }

  // A task of a product multiplies `rows` rows of A, `depth` of k at a time, by `columns` columns of B, strip by strip.
  // A third of L2 holds the block of A, a third holds C, which accumulates depth by depth, and the rest holds two
  // strips of B, the current and the next.
  std::int64_t rows(std::int64_t depth) const { return caches_.l2 / 3 / (4 * depth); }
  std::int64_t columns(std::int64_t rows) const {
    return std::max<std::int64_t>(16, caches_.l2 / 3 / (4 * rows) / 16 * 16);
  }

  // Half of L2, in floats: what a worker keeps while other data streams past.
  std::int64_t l2_budget_floats() const { return caches_.l2 / 2 / 4; }
  // A share of the last-level cache for data that all workers use, as a multiple of a worker's L2.
  std::int64_t llc_bytes(std::int64_t times) const { return times * caches_.l2; }
  // Half of L1, in floats: data that stays there while as much again passes through.
  std::int64_t l1_budget_floats() const { return caches_.l1 / 2 / 4; }

  friend bool operator==(const Blocking&, const Blocking&) = default;

 private:
  CacheSizes caches_;
};

}  // namespace lc::backends::cpu
