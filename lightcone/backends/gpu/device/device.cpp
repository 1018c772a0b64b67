#include "lightcone/backends/gpu/device/device.h"

#include <cstdlib>

#include "lightcone/base/error.h"

namespace lc::backends::gpu {

int capability(const Limits& l) {
  if (l.language != Language::Cuda || !l.architecture.starts_with("sm_")) return 0;
  return std::atoi(l.architecture.c_str() + 3);
}

void GpuDevice::call(const LibraryCall&, std::span<const BufferSlice>, std::span<const std::int64_t>) {
  throw Error("device", str_cat(name(), " runs no calls of libraries"));
}

void GpuDevice::launch(const Launch& l) {
  if (l.kernel->part()) {  // the operand's slice is wanted at another address
    const auto offset = static_cast<std::size_t>(l.sizes[1]);
    return copy(l.out, {l.in[0].buffer, l.in[0].offset + offset}, static_cast<std::size_t>(l.sizes[0]));
  }
  const auto* kernel = dynamic_cast<const GpuKernel*>(l.kernel);
  if (!kernel) throw Error("device", str_cat("the kernel '", l.kernel->name(), "' is not for ", name()));
  kernel->enqueue(l, *this);
}

}  // namespace lc::backends::gpu
