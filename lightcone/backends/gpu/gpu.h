// Compilers for accelerators: `generic() | cuda()`, `opencl()` and `metal()` turn every node of a graph into kernels of
// a device. The kernels are text in the device's language, made by one generator (codegen/simt), and are compiled when
// the graph is compiled.
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

// Options of the compilers cuda(), opencl() and metal().
struct GpuOptions {
  // How far f32 products may be rounded.
  Precision precision = Precision::Highest;
  // The compiler for nodes that the device cannot compute (f64 on a device without it): cpu(), for instance. Each run
  // then copies their operands to the host and the result back, and Program::notes() reports it. Without a fallback
  // such a graph throws Error.
  std::optional<Compiler> fallback = {};
};

namespace backends::gpu {

// Returns a compiler for a device that is open already, which may be of the user's own class.
Compiler compiler(std::shared_ptr<GpuDevice> device, GpuOptions options = {});
// Returns a compiler that calls `open` when it compiles its first graph and keeps the device. If `open` throws, the
// next compilation calls it again.
Compiler compiler(std::function<std::shared_ptr<GpuDevice>()> open, GpuOptions options = {});

// Compiles several graphs, whose kernels are compiled together, and returns them in the same order.
std::vector<Graph> compile_batch(std::span<const Graph* const> graphs, const std::shared_ptr<GpuDevice>& device,
                                 GpuOptions options = {}, PassLog* log = nullptr);

}  // namespace backends::gpu
}  // namespace lc
