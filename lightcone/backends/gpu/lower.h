// Lowers a graph to kernels of an accelerator.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/backends/gpu/gpu.h"

namespace lc::backends::gpu {

// Returns the name by which kernels of composites are registered for the device (KernelRule::device).
std::string rule_name(const GpuDevice& device);
// Makes the kernel of a composite, or of a node that is one of its several results. Requires has_kernel().
std::shared_ptr<Kernel> library_kernel(const Graph& g, const Node& n, const GpuDevice& device, Precision precision);
// Returns false for a composite without a kernel, which is replaced by its definition.
bool has_kernel(const Graph& g, const Node& n, const GpuDevice& device);

struct Lowered {
  Graph graph;
  std::vector<std::shared_ptr<TextKernel>> kernels;  // kernels whose text is not compiled yet
};
Lowered lower(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, const GpuOptions& options);

}  // namespace lc::backends::gpu
