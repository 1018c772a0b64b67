// What the loops of a product (gemm.cpp) and those around tiles that keep their sums apart from C (apart.cpp) share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/threads/work_stealing.h"

namespace lc::backends::cpu::products {

using i64 = std::int64_t;
constexpr i64 kGroup = PackedLayout::rows;

// Division of `whole` items into `parts` even parts.
struct Even {
  i64 whole = 0, parts = 1;
  i64 begin(i64 i) const { return i * whole / parts; }
  i64 size(i64 i) const { return begin(i + 1) - begin(i); }
};

struct Job {
  const Gemm* g;
  const GemmTable* t;
  const Microkernel* u;
  std::byte* panel = nullptr;
  std::byte* a = nullptr;     // packed strips of A: all strips of one k block, then of the next
  bool own = false;           // each worker packs its task's strips instead
  std::byte* rows = nullptr;  // per worker: one strip computed by the prologue
  std::byte* sums = nullptr;  // per worker: scratch for long sums, and for sums apart from C
  i64 sums_bytes = 0;
  const std::byte* b = nullptr;  // groups of 16 columns, each with all of k
  i64 depth = 0, i0 = 0, j0 = 0, columns = 0;
  Even strips = {};                  // rows from i0 on, in strips
  Even down = {}, across = {};       // tasks: strips of A, and tiles of columns
  Even groups = {0, 0};              // groups of B to pack into the panel, and packing tasks
  Even bundles = {};                 // strips per packing task
  bool unpacks = false;              // b are packed weights to be repacked; else b has the microkernel's layout
  StealingRanges* shares = nullptr;  // for streaming
};

// Prefetch addresses for the next column of tiles: a piece of its B for each tile of the current column. There is no
// division, which would take as long as a tenth of a tile's products.
struct Ahead {
  const std::byte *b, *nothing;
  i64 group, depth_bytes, groups, piece, offset = 0;
  const void* next() {
    if (groups <= 0) return nothing;
    const void* here = b + offset;
    for (offset += piece; offset >= depth_bytes && groups > 0; --groups) offset -= depth_bytes, b += group;
    return here;
  }
};

// Address of A's element `offset`; it is a byte for exact products, and may be bf16.
const float* a_at(const Gemm& g, const Microkernel& u, i64 offset);
// Returns whether A is column-major and its strips can be packed a few k at a time, because no sums over all of k
// follow the packed data (as they do for int8).
bool packs_k_pairs(const Gemm& g, const Microkernel& u);
// Bytes of `depth` k of one group of B as it is stored.
i64 stored_bytes(const Job& j, i64 depth);
// Address of column c of B from k on.
const std::byte* stored(const Job& j, i64 c, i64 k);
// Packs k from k0 on of strips [first, last), one after another. `made`: rows of one strip computed by the prologue, or
// null.
void pack_strips(const Job& j, i64 first, i64 last, i64 k0, i64 depth, const float* made, std::byte* to);
// Rows [i0, i0 + rows) and columns [begin, end) of C are final.
void finish(const Gemm& g, i64 i0, i64 rows, i64 begin, i64 end);

}  // namespace lc::backends::cpu::products
