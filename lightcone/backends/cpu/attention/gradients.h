// The gradients of attention, without materializing all probabilities. Each head is processed in blocks of queries; a
// block's scores against all keys it may see stay in the cache while all five products read them.
//
// A worker owns whole key heads, with all query heads that share one. Sums over queries are therefore made in one order
// for any number of threads. Keys hidden by a causal mask are skipped if all numbers of a head are finite; otherwise a
// product of 0 and a non-finite number would be missed, and every product is computed in full.
#pragma once

#include <cstdint>
#include <memory>

#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/core/graph.h"

namespace lc {
class Kernel;
}  // namespace lc

namespace lc::backends::cpu {

// Functions per instruction set.
struct AttentionGradientsTable {
  int mr, nr, width;  // rows and columns of a tile; vector lanes
  // C[rows <= mr, columns] (+)= A * B. A's element (r, k) is a[r * a_row + k * a_step].
  // B's row k begins at b + k * b_row.
  void (*products)(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b, std::int64_t b_row,
                   std::int64_t depth, float* c, std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
  // Turns n scores, a multiple of `width`, into probabilities proportional to 2^(exponent * (score - maximum)). Returns
  // their sum before normalization.
  float (*weigh)(float* scores, std::int64_t n, float exponent);
  // slope = p * (slope - sum of p * slope) * scale.
  void (*slopes)(const float* p, float* slope, std::int64_t n, float scale);
};
extern const AttentionGradientsTable kAttentionGradientsGeneric, kAttentionGradientsAvx2, kAttentionGradientsAvx512;

// Makes the kernel of a builtin::attention_gradients() node; null if its types or sizes are not supported.
std::shared_ptr<Kernel> attention_gradients_kernel(const Graph& g, const Node& n, Isa isa);

}  // namespace lc::backends::cpu
