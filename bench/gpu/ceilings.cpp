// The limits of a device, measured by kernels that do one thing each.
#include "lightcone/codegen/simt/dialect.h"
#include "rows.h"

namespace lc::gpu_bench {
namespace {

constexpr int kThreads = 256;

// A kernel of a few lines, and its launch.
class Small {
 public:
  Small(backends::gpu::GpuDevice& device, std::string_view name, const std::string& body, std::size_t sizes)
      : device_(device),
        memory_(device.allocate(kThreads * sizeof(float))),
        code_(device.compile(text(device, name, body, sizes), {std::string(name)})) {}
  void launch_kernel(std::int64_t groups, std::span<const std::int64_t> sizes) {
    const BufferSlice at{memory_.get(), 0};
    device_.launch_kernel(
        {.code = code_.get(), .grid_size = groups, .block_size = kThreads, .buffers = {&at, 1}, .sizes = sizes});
  }

 private:
  static std::string text(backends::gpu::GpuDevice& device, std::string_view name, const std::string& body,
                          std::size_t sizes) {
    const codegen::simt::Language l = device.limits().language;
    const std::vector<codegen::simt::Parameter> places = {{"float", "out", true}};
    return codegen::simt::prelude(l) + codegen::simt::begin_kernel(l, name, kThreads, places, sizes, "int") + body +
           "}\n";
  }
  backends::gpu::GpuDevice& device_;
  std::unique_ptr<Buffer> memory_;
  std::shared_ptr<const backends::gpu::Code> code_;
};

Json copies(const Setting& s) {
  const std::size_t bytes = s.tiny ? 1 << 20 : std::size_t{1} << 30;
  const auto from = s.device->allocate(bytes), to = s.device->allocate(bytes);
  const double t = time_of(s, [&] { s.device->copy({to.get(), 0}, {from.get(), 0}, bytes); });
  return {{"gbytes_per_s", 2e-9 * static_cast<double>(bytes) / t}};
}

Json starts(const Setting& s) {
  Small empty(*s.device, "nothing", "  if (n0 < 0) out[0] = 0;\n", 1);
  const std::int64_t size = 0;
  const int many = s.tiny ? 10 : 1000;
  const double t = time_of(s, [&] {
    for (int k = 0; k < many; ++k) empty.launch_kernel(1, {&size, 1});
  });
  return {{"us_a_start", 1e6 * t / many}};
}

// Each thread computes eight sums, which are independent of each other.
Json multiply_adds(const Setting& s) {
  Small kernel(*s.device, "multiply_adds",
               "  float a[8];\n  for (int k = 0; k < 8; ++k) a[k] = (float)(LC_THREAD + k);\n"
               "  for (int i = 0; i < n0; ++i) {\n    LC_UNROLL\n    for (int k = 0; k < 8; ++k) a[k] = LC_FMA(a[k], "
               "0.9999f, 0.5f);\n"
               "  }\n  float sum = 0;\n  for (int k = 0; k < 8; ++k) sum += a[k];\n  if (sum == -1.0f) out[0] = sum;\n",
               1);
  const std::int64_t groups = s.tiny ? 1 : 16 * s.device->limits().multiprocessors, rounds = s.tiny ? 8 : 4096;
  const double t = time_of(s, [&] { kernel.launch_kernel(groups, {&rounds, 1}); });
  const double flops = 2.0 * 8 * kThreads * static_cast<double>(groups * rounds);
  return {{"tflops", 1e-12 * flops / t}};
}

}  // namespace

std::vector<Row> ceilings() {
  return {{"ceiling copy", copies}, {"ceiling start", starts}, {"ceiling f32 multiply-add", multiply_adds}};
}

}  // namespace lc::gpu_bench
