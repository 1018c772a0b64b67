// Long sums of f32 are sums of blocks. With one accumulator the error grows with the number of terms, and a count stops
// at 2^24. So the accumulator is added to a second one every 64 steps and starts again at zero; the rounding error of
// that addition is summed as well (D. E. Knuth, "The Art of Computer Programming", volume 2, 4.2.2, theorem B), and
// both are added at the end. The error of a sum is then that of its blocks, however many there are: docs/accuracy.md.
// Blocks depend on the loops' extents alone, so C, LLVM and every number of threads add in the same order.
#include <algorithm>
#include <bit>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

std::int64_t block_of(std::int64_t most_steps, std::int64_t& added) {
  const auto block =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(kBlock / added, 1))));
  const bool fits = most_steps <= block;
  added = std::min(kBlock, added * (fits ? std::max<std::int64_t>(most_steps, 1) : block));
  return fits ? 0 : block;
}

void block_sums(Kernel& k) {
  for (const Reduction& r : k.reductions) {
    if (r.op != Op::SumReduce || r.dtype != DType::F32) continue;
    std::int64_t added = 1;
    for (int id = r.inner_loop;; id = k.loops[id].parent) {
      Loop& l = k.loops[id];
      const std::int64_t most = l.extent.bounds().hi, lanes = l.lanes ? kLanes : 1;
      l.block = block_of(most / lanes + (most % lanes != 0), added);
      if (id == r.outer_loop) break;
    }
  }
}

bool blocked(const Kernel& k, int reduction) {
  return std::any_of(k.loops.begin(), k.loops.end(),
                     [&](const Loop& l) { return l.reduction == reduction && l.block > 0; });
}

}  // namespace lc::codegen
