// Composites as kernels over whole, contiguous operands.
#include "lightcone/backends/gpu/lower.h"
#include "lightcone/core/composite.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/passes/barrier.h"

namespace lc::gpu {

bool has_kernel(const Graph& g, const Node& n, const GpuDevice& device) {
  if (n.op != Op::Composite) return true;
  for (const CompositeRef& c : {builtin::gather(), builtin::slice_scatter(), barrier()})
    if (is(n, c)) return true;
  return library_kernel(g, n, device) != nullptr;
}

std::shared_ptr<Kernel> library_kernel(const Graph& g, const Node& n, const GpuDevice&) {
  const Dim size = static_cast<std::int64_t>(size_of(n.dtype));
  if (n.op == Op::Result) {
    const auto k = static_cast<std::size_t>(n.axis);
    return part_kernel(result_offsets(g[n.in[0].node].results)[k], product(n.shape) * size);
  }
  if (is(n, barrier())) return part_kernel(0, product(n.shape) * size);  // the same memory
  return nullptr;
}

}  // namespace lc::gpu
