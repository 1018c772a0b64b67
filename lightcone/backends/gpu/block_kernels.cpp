#include "lightcone/backends/gpu/block_kernels.h"

#include "lightcone/backends/gpu/products/blocks.h"
#include "lightcone/backends/gpu/products/operand.h"

namespace lc::backends::gpu {

namespace {
constexpr int kThreads = 256;
}

DequantizeKernel::DequantizeKernel(QuantFormat format, const Dim& elements, const Limits& limits)
    : type_(weight_type(format)), elements_(elements), language_(limits.language) {}

void DequantizeKernel::enqueue(const Launch& l, GpuDevice& device) const {
  launch_kernel(device, LaunchBuffers(l), (l.sizes[0] + kThreads - 1) / kThreads, kThreads, l.sizes);
}

std::string DequantizeKernel::text(std::string_view name) const {
  const codegen::simt::Parameter parameters[] = {{"u8", "blocks"}, {"float", "out_", true}};
  return value_functions(type_) + codegen::simt::begin_kernel(language_, name, kThreads, parameters, 1, "long") +
         "  const long i = (long)LC_GROUP * " + std::to_string(kThreads) +
         " + LC_THREAD;\n  if (i < n0) out_[i] = " + value(type_, "blocks", "i") + ";\n}\n";
}

RepackKernel::RepackKernel(QuantFormat format, const Dim& blocks, const Limits& limits)
    : format_(format), blocks_(blocks), language_(limits.language) {}

void RepackKernel::enqueue(const Launch& l, GpuDevice& device) const {
  launch_kernel(device, LaunchBuffers(l), (l.sizes[0] + kThreads - 1) / kThreads, kThreads, l.sizes);
}

std::string RepackKernel::text(std::string_view name) const { return repack_text(format_, name, kThreads, language_); }

}  // namespace lc::backends::gpu
