// A Metal GPU. If it shares memory with the host, the host reaches its buffers directly, and a copy from the host needs
// the GPU only while it may be using the buffer.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/backends/metal/objc.h"
#include "lightcone/backends/metal/stream.h"

namespace lc::backends::metal {

class MetalBuffer final : public Buffer {
 public:
  MetalBuffer(const Device* owner, Ref object, std::size_t bytes, std::byte* contents)
      : Buffer(bytes), owner_(owner), object_(std::move(object)), contents_(contents) {}
  const Device* owner() const { return owner_; }
  Id object() const { return object_.get(); }
  // Returns the host's address of the buffer, to be used while the GPU is idle; null if the GPU has memory of its own.
  std::byte* contents() const { return contents_; }
  std::atomic<std::uint64_t> last_use = 0;  // ticket of the last command that uses it (Stream::Turn)

 private:
  const Device* owner_;
  Ref object_;  // commands in flight keep it, too
  std::byte* contents_;
};

class MetalCode final : public gpu::Code {
 public:
  struct Function {
    std::string name;
    Ref pipeline;
    std::size_t threads = 0, shared = 0;  // most threads of a block; bytes that the text declares
  };
  MetalCode(const Device* owner, std::vector<Function> functions) : owner_(owner), functions_(std::move(functions)) {}
  const Device* owner() const { return owner_; }
  const std::vector<Function>& functions() const { return functions_; }

 private:
  const Device* owner_;
  std::vector<Function> functions_;
};

class MetalDevice final : public gpu::GpuDevice {
 public:
  MetalDevice(const Runtime& runtime, Ref device);
  std::string name() const override { return limits_.name; }
  const gpu::Limits& limits() const override { return limits_; }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override;
  void copy_in(BufferSlice to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override;
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override;
  void zero(BufferSlice to, std::size_t bytes) override;

  std::shared_ptr<const gpu::Code> compile(const std::string& text, const std::vector<std::string>& kernels) override;
  void launch_kernel(const gpu::KernelLaunch& s) override;
  void synchronise() override { stream_.wait(); }

 private:
  struct Selectors {  // selectors of the messages sent for each kernel
    explicit Selectors(const Runtime& r);
    Selector pipeline, buffer, bytes, shared, dispatch, copy, fill;
  };
  struct Span {  // a position in a buffer
    Id buffer;
    std::size_t offset;
  };
  MetalBuffer& check_range(BufferSlice p, std::size_t bytes, std::string_view doing) const;
  std::unique_ptr<MetalBuffer> make_buffer(std::size_t bytes, bool shared);
  Ref make_options() const;
  MetalCode::Function make_function(Id library, const std::string& name) const;
  void encode(Id encoder, const MetalCode::Function& f, const gpu::KernelLaunch& s, const MetalBuffer* sizes) const;
  // Copies, or zeroes if `from` is null: by a blit as far as possible, and the rest by a kernel.
  void move(BufferSlice to, BufferSlice from, std::size_t bytes, std::size_t held = 0);
  const MetalCode& byte_code();

  const Runtime& runtime_;
  const Ref device_;
  const bool shared_memory_;
  const Selectors selectors_;
  gpu::Limits limits_;
  std::size_t largest_ = 0;  // bytes of one buffer, at most
  Stream stream_;
  std::mutex byte_code_mutex_;
  std::shared_ptr<const gpu::Code> byte_code_;
};

}  // namespace lc::backends::metal
