// From a graph to kernels of an accelerator.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/backends/gpu/gpu.h"

namespace lc::backends::gpu {

// Whose kernels for composites it takes: KernelRule::device.
std::string rule_name(const GpuDevice& device);
// A kernel for a composite, or for one of several results; null where there is none: then its definition is computed.
std::shared_ptr<Kernel> library_kernel(const Graph& g, const Node& n, const GpuDevice& device, Precision precision);
bool has_kernel(const Graph& g, const Node& n, const GpuDevice& device);

struct Lowered {
  Graph graph;
  std::vector<std::shared_ptr<TextKernel>> kernels;  // that wait for their code
};
Lowered lower(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, const GpuOptions& options);

}  // namespace lc::backends::gpu
