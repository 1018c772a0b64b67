// A device that compiles and runs nothing. Kernels are lowered for a GPU of NVIDIA's that need not be present, NVRTC
// compiles them to machine code, and a launch only records what would be launched.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lightcone/backends/cuda/compile.h"
#include "lightcone/backends/gpu/device/device.h"

namespace lc::gpu_kernels {

// A GPU for each architecture, with its limits.
struct Gpu {
  std::string name;
  int major, minor, multiprocessors;
  std::size_t shared;  // bytes that a block may have
};
const std::vector<Gpu>& gpus();

class CompilingDevice final : public backends::gpu::GpuDevice {
 public:
  // Writes machine code to `folder`. `warpgroups`: as CudaOptions::warpgroups, if the GPU has such instructions.
  CompilingDevice(std::shared_ptr<const backends::cuda::Compiler> compiler, const Gpu& gpu, std::string folder,
                  bool warpgroups = false);

  struct Started {
    std::string function, file;  // file: of the function
    std::int64_t groups = 0;
    int threads = 0;
    std::size_t shared = 0;  // beyond what the text declares
  };
  // Returns the kernels that this launch would start.
  std::vector<Started> started(const Launch& l);

  std::string name() const override { return limits_.name; }
  const backends::gpu::Limits& limits() const override { return limits_; }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override;
  void copy_in(BufferSlice, const void*, std::size_t) override {}
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override;
  void copy(BufferSlice, BufferSlice, std::size_t) override {}
  void zero(BufferSlice, std::size_t) override {}
  std::shared_ptr<const backends::gpu::Code> compile(const std::string& text,
                                                     const std::vector<std::string>& kernels) override;
  void launch_kernel(const backends::gpu::KernelLaunch& s) override;

 private:
  std::shared_ptr<const backends::cuda::Compiler> compiler_;
  backends::gpu::Limits limits_;
  std::string folder_;
  std::mutex mutex_;  // guards the fields below, because several texts are compiled at once
  int files_ = 0;
  std::vector<Started> started_;
};

}  // namespace lc::gpu_kernels
