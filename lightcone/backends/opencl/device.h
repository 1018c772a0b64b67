// An OpenCL device: one context, and one queue whose commands run in order.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/backends/opencl/find.h"
#include "lightcone/backends/opencl/library.h"
#include "lightcone/cache/object_cache.h"

namespace lc::backends::opencl {

// The state of an open device, which its buffers and compiled code share. The last owner closes it.
struct Session {
  std::shared_ptr<const Library> library;
  Found found;
  cache::ObjectCache cache;  // cache of compiled code
  api::Context* context = nullptr;
  api::Queue* queue = nullptr;
  std::atomic<std::size_t> allocated{0};  // bytes of all buffers

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();
  const api::Functions& functions() const { return library->functions; }
  const std::string& name() const { return found.info.limits.name; }
};

class OpenClBuffer final : public Buffer {
 public:
  OpenClBuffer(std::shared_ptr<Session> session, std::size_t bytes);
  ~OpenClBuffer() override;
  api::Memory* memory() const { return memory_; }
  const Session* session() const { return session_.get(); }

 private:
  std::size_t taken() const { return size() ? size() : 1; }  // OpenCL has no buffers of 0 bytes
  std::shared_ptr<Session> session_;
  api::Memory* memory_ = nullptr;
};

class OpenClCode final : public gpu::Code {
 public:
  struct Function {
    std::string name;
    api::Kernel* kernel = nullptr;
    std::size_t arguments = 0;
    std::size_t threads = 0;  // threads of a group, at most
  };

  OpenClCode(std::shared_ptr<Session> session, const std::string& text, const std::vector<std::string>& kernels);
  ~OpenClCode() override;
  const Session* session() const { return session_.get(); }
  const std::vector<Function>& functions() const { return functions_; }
  // Must be held from setting a kernel's arguments to its launch, because the arguments are set one by one.
  std::mutex& mutex() const { return mutex_; }

 private:
  void make(const std::string& text);  // takes the code from the cache, or builds it and keeps it there
  bool load(const std::string& binary, const char* options);
  void build(const std::string& text, const char* options);
  std::string binary() const;
  void find(const std::string& kernel);
  void release();
  std::shared_ptr<Session> session_;
  api::Program* program_ = nullptr;
  std::vector<Function> functions_;
  mutable std::mutex mutex_;
};

class OpenClDevice final : public gpu::GpuDevice {
 public:
  explicit OpenClDevice(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~OpenClDevice() override;
  std::string name() const override { return session_->name(); }
  const gpu::Limits& limits() const override { return session_->found.info.limits; }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override;
  std::unique_ptr<Buffer> reserve(std::size_t /*bytes*/) override { return nullptr; }
  void copy_in(BufferSlice to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override;
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override;
  void zero(BufferSlice to, std::size_t bytes) override;
  std::shared_ptr<const gpu::Code> compile(const std::string& text, const std::vector<std::string>& kernels) override;
  void launch_kernel(const gpu::KernelLaunch& s) override;
  void synchronise() override;

 private:
  api::Memory* memory(const BufferSlice& p) const;
  api::Memory* piece(const BufferSlice& p, std::size_t bytes) const;
  api::Int fill(const BufferSlice& to, std::size_t bytes);  // with zeros
  const OpenClCode::Function& function(const gpu::KernelLaunch& s, const OpenClCode& code) const;
  std::shared_ptr<Session> session_;
};

}  // namespace lc::backends::opencl
