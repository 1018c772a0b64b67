// A CUDA device as a GpuDevice.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "lightcone/backends/cuda/compile.h"
#include "lightcone/backends/cuda/cublas_lt.h"
#include "lightcone/backends/cuda/cuda.h"
#include "lightcone/backends/cuda/memory.h"
#include "lightcone/backends/cuda/staging.h"

namespace lc::backends::cuda {

class CudaDevice final : public gpu::GpuDevice {
 public:
  explicit CudaDevice(const CudaOptions& options);
  ~CudaDevice() override;

  std::string name() const override { return limits_.name; }
  const gpu::Limits& limits() const override { return limits_; }
  const std::shared_ptr<Stream>& stream() const { return stream_; }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  std::unique_ptr<Buffer> reserve(std::size_t bytes) override { return memory_->reserve(bytes); }
  void copy_in(BufferSlice to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override;
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override;
  void zero(BufferSlice to, std::size_t bytes) override;
  void synchronise() override { stream_->wait(); }

  std::shared_ptr<const gpu::Code> compile(const std::string& text, const std::vector<std::string>& kernels) override;
  void launch_kernel(const gpu::KernelLaunch& s) override;
  std::shared_ptr<const gpu::LibraryProduct> library_product(const gpu::MatrixProduct& p) override;
  bool prefers(const gpu::LibraryProduct& p, const std::string& text,
               const std::function<std::optional<double>()>& measure) override;
  void call(const gpu::LibraryCall& c, std::span<const BufferSlice> buffers,
            std::span<const std::int64_t> sizes) override;
  std::string library_problem() const override;
  // Runs that are repeated become graphs of the driver.
  std::unique_ptr<Recording> record(std::span<const Launch> launches) override;

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<const Compiler> compiler_;
  gpu::Limits limits_;
  bool overlaps_ = false;  // CudaOptions::overlap
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<Memory> memory_;
  Staging staging_;
  cache::ObjectCache cache_;
  const CudaOptions options_;
  mutable std::mutex lt_mutex_;  // guards the fields below
  bool lt_asked_ = false;        // its file is large, so it is loaded when the first large product is compiled
  std::string lt_problem_;
  std::shared_ptr<CublasLt> lt_;
};

}  // namespace lc::backends::cuda
