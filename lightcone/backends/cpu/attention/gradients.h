// The derivative of attention without its probabilities ever being in memory as a whole: of each head block by block of
// queries, whose scores against all keys they may see stay in the cache while all five products read them.
//
// A worker has whole key heads, with all query heads that share one: what adds up over queries does so in one order,
// whatever the number of threads. Keys that a causal mask hides are left out where all numbers of a head are finite;
// else 0 times one that is not would be missed, and every product is done in full.
#pragma once

#include <cstdint>
#include <memory>

#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/core/graph.h"

namespace lc {
class Kernel;
}  // namespace lc

namespace lc::backends::cpu {

// One instruction set's functions.
struct AttentionGradientsTable {
  int mr, nr, width;  // rows and columns of a tile; lanes of a vector
  // C[rows <= mr, columns] (+)= A * B: a's element (r, k) at a[r * a_row + k * a_step], b's row k at b + k * b_row.
  void (*products)(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b, std::int64_t b_row,
                   std::int64_t depth, float* c, std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
  // n scores, of whole vectors, become probabilities: the exponential of `exponent` times the difference from the
  // largest, in powers of two. Gives the sum before it was 1.
  float (*weigh)(float* scores, std::int64_t n, float exponent);
  // slope = p * (slope - sum of p * slope) * scale
  void (*slopes)(const float* p, float* slope, std::int64_t n, float scale);
};
extern const AttentionGradientsTable kAttentionGradientsGeneric, kAttentionGradientsAvx2, kAttentionGradientsAvx512;

// Of a node that is ops/attention.h's attention_gradients(); null where there is none for its types.
std::shared_ptr<Kernel> attention_gradients_kernel(const Graph& g, const Node& n, Isa isa);

}  // namespace lc::backends::cpu
