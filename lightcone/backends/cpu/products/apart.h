// Products on tile registers (Microkernel::together). Putting down a tile register takes as long as the products of a
// step of k, and rows of C may be a power of two apart, so that they share a few sets of the caches. Sums therefore
// wait for the next chunk of k in blocks of a tile each, and C is written once.
#pragma once

#include "lightcone/backends/cpu/products/gemm_job.h"

namespace lc::backends::cpu::products {

// Scratch per worker: for sums, and for A if the worker packs its own strips. They never decrease with the sizes of the
// product.
i64 apart_sums_bytes(const Gemm& g, const Microkernel& u);
i64 apart_own_bytes(const Gemm& g, const Microkernel& u);

// Parts of the strips of A and of the tiles of columns, one task for each worker.
struct Grid {
  i64 down = 1, across = 1;
};
Grid apart_grid(i64 strips, i64 tiles, i64 workers);

// Computes columns [c0, c1) of strips [s0, s1). `own`: buffer for A if the worker packs it, else null.
void compute_apart(const Job& j, i64 s0, i64 s1, i64 c0, i64 c1, std::byte* own, std::byte* sums);

}  // namespace lc::backends::cpu::products
