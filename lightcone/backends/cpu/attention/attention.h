// softmax(scale * Q K^T, masked) V without materializing the scores: blocks of rows iterate over tiles of keys with a
// running maximum and a running sum (online softmax).
//
// A row is a query of any head that shares its keys with the others of the block, so grouped heads read each key once.
// Blocks, tiles and splits of the keys depend on sizes alone, so results have the same bits for any number of threads.
// Masked tiles are skipped if the result cannot differ.
#pragma once

#include <memory>

#include "lightcone/backends/cpu/kernels/abi/attention_abi.h"
#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/lowering/attention.h"
#include "lightcone/passes/precision.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::backends::cpu {

static_assert(kScoreSteps == lowering::kAttentionSteps);

// Makes the kernel of a matched attention.
std::shared_ptr<HostKernel> attention_kernel(lowering::Attention match, const Target& target, Precision precision);

}  // namespace lc::backends::cpu
