// Attention as one kernel node of an accelerator: many rows take one start, few rows two when the keys are split. And
// its derivative as another: a start for the queries, one for the keys, and where a mask is causal one before them.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/backends/gpu/gpu.h"
#include "lightcone/lowering/attention.h"

namespace lc::backends::gpu {

struct AttentionParts {
  std::shared_ptr<GpuKernel> kernel;                // null where the device has none for it
  std::vector<std::shared_ptr<TextKernel>> pieces;  // that wait for their code
};
AttentionParts attention_kernel(lowering::Attention match, const Limits& limits, Precision precision);

// Every attention of a graph that has a kernel, whose code is compiled here.
Graph fuse_attention(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, Precision precision);

// Is it a node of ops/attention.h's attention_gradients()? And its kernel: null where the device has none for its types
// and heads.
std::shared_ptr<TextKernel> attention_gradients_kernel(const Graph& g, const Node& n, const Limits& limits,
                                                       Precision precision);

}  // namespace lc::backends::gpu
