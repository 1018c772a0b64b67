// Attention as one kernel node of a GPU: one launch for many rows, two for few rows if the keys are split. The
// gradients of attention are another node: a launch for the queries and one for the keys, after one that looks for
// non-finite tiles if the attention is causal.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/backends/gpu/gpu.h"
#include "lightcone/lowering/attention.h"

namespace lc::backends::gpu {

struct AttentionParts {
  std::shared_ptr<GpuKernel> kernel;                // null if the device has no kernel for it
  std::vector<std::shared_ptr<TextKernel>> pieces;  // kernels whose text is not compiled yet
};
// Makes the kernel of a matched attention.
AttentionParts attention_kernel(lowering::Attention match, const Limits& limits, Precision precision);

// Replaces every attention that `fuse` finds, and for which the device has a kernel, and compiles the kernels' code.
Graph fuse_attention(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, Precision precision,
                     lowering::AttentionFusion fuse);

// Makes the kernel of a node of builtin::attention_gradients(). Returns null if the device has none for its
// types and head sizes.
std::shared_ptr<TextKernel> attention_gradients_kernel(const Graph& g, const Node& n, const Limits& limits,
                                                       Precision precision);

}  // namespace lc::backends::gpu
