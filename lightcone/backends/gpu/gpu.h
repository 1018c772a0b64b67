// Compilers for accelerators: `generic() | cuda()`, `opencl()`, `metal()` turn every node of a graph into kernels of a
// device. Kernels are text in the device's language, made by one generator (codegen/simt), and compiled when the graph
// is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc {

struct GpuOptions {
  Precision precision = Precision::Highest;
  // What computes what the device cannot, which is f64 where it has none: cpu(), for instance. Each time operands are
  // copied to the host and the result back; Program::notes() says so. Without it such a graph is an Error.
  std::optional<Compiler> fallback = {};
};

namespace backends::gpu {

// For a device that was opened, or one of the user's own; or for one that is opened when the first graph is compiled.
Compiler compiler(std::shared_ptr<GpuDevice> device, GpuOptions options = {});
Compiler compiler(std::function<std::shared_ptr<GpuDevice>()> open, GpuOptions options = {});

// Several graphs, whose kernels are compiled together.
std::vector<Graph> compile_batch(std::span<const Graph* const> graphs, const std::shared_ptr<GpuDevice>& device,
                                 GpuOptions options = {}, PassLog* log = nullptr);

}  // namespace backends::gpu
}  // namespace lc
