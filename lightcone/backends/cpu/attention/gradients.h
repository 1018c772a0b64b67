// The gradients of attention, without materializing all probabilities. Each head is processed in blocks of queries; a
// block's scores against all keys it may see stay in the cache while all five products read them.
//
// A worker owns whole key heads, with all query heads that share one. Sums over queries are therefore made in one order
// for any number of threads. Keys hidden by a causal mask are skipped if all numbers of a head are finite; otherwise a
// product of 0 and a non-finite number would be missed, and every product is computed in full.
#pragma once

#include <memory>

#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/core/graph.h"
#include "lightcone/passes/precision.h"

namespace lc {
class Kernel;
}  // namespace lc

namespace lc::backends::cpu {

// Makes the kernel of a builtin::attention_gradients() node; null if its types or sizes are not supported. Its products
// are in bf16 at Precision::Medium on tile registers.
std::shared_ptr<Kernel> attention_gradients_kernel(const Graph& g, const Node& n, const Target& target,
                                                   Precision precision);

}  // namespace lc::backends::cpu
