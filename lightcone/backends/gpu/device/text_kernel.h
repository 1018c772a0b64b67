// Kernels that are text until they are compiled. The kernels of a program are compiled together, and equal ones once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::gpu {

// Divides, rounding up.
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class TextKernel : public GpuKernel {
 public:
  std::string name() const override { return name_; }
  std::string source() const override { return text(name_); }
  // Returns the kernel's definition under this name. If it has several functions, the others are name_1, name_2, ...
  virtual std::string text(std::string_view name) const = 0;
  virtual std::size_t functions() const { return 1; }
  void rename(std::string name) { name_ = std::move(name); }
  void install(std::shared_ptr<const Code> code, std::size_t function) {
    code_ = std::move(code), function_ = function;
  }

 protected:
  // The buffers of a launch as arguments: its operands from index `first` on, and then the result.
  class LaunchBuffers {
   public:
    LaunchBuffers(const Launch& l, std::size_t first = 0);
    std::span<const BufferSlice> all() const { return {buffers_, count_}; }

   private:
    BufferSlice buffers_[kMaxBuffers];
    std::size_t count_ = 0;
  };
  void launch_kernel(GpuDevice& device, const LaunchBuffers& buffers, std::int64_t groups, int threads,
                     std::span<const std::int64_t> sizes, std::size_t shared = 0) const {
    launch_kernel(device, 0, buffers.all(), groups, threads, sizes, shared);
  }
  void launch_kernel(GpuDevice& device, std::size_t function, std::span<const BufferSlice> buffers, std::int64_t groups,
                     int threads, std::span<const std::int64_t> sizes, std::size_t shared = 0,
                     std::span<const TensorMap> maps = {}) const {
    device.launch_kernel({code_.get(), function_ + function, groups, threads, shared, buffers, sizes, maps});
  }

 private:
  std::string name_;
  std::shared_ptr<const Code> code_;
  std::size_t function_ = 0;
};

// Names each kernel by its text, compiles each text once, and installs the code.
void compile(std::span<const std::shared_ptr<TextKernel>> kernels, GpuDevice& device, PassLog& log);

}  // namespace lc::backends::gpu
