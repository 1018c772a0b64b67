// A device whose memory the host may not access: its pages are accessible only while one of its kernels or copies runs.
// It interprets the kernel IR, so it runs any graph.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/device/device.h"
#include "lightcone/passes/compiler.h"

namespace lc::test {

// A buffer whose pages are inaccessible unless an Open exists.
class ClosedBuffer final : public Buffer {
 public:
  ClosedBuffer(std::size_t bytes, bool reserved);
  ~ClosedBuffer() override;
  bool commit(std::size_t at, std::size_t bytes) override;
  std::size_t committed() const override;
  std::byte* address() const { return data_; }  // for the device, and for a test that provokes the fault

  class Open {  // RAII: makes the pages accessible; several may exist at once
   public:
    explicit Open(Buffer* b);
    Open(Open&& other) noexcept : b_(std::exchange(other.b_, nullptr)) {}
    ~Open();

   private:
    ClosedBuffer* b_;
  };

 private:
  void protect(int access) const;
  std::byte* data_ = nullptr;
  std::size_t pages_ = 0;                      // size of the mapping in bytes, whole pages
  std::map<std::size_t, std::size_t> ranges_;  // committed ranges of whole pages: begin -> end
  std::mutex mutex_;
  int open_ = 0;
};

class SeparateDevice final : public Device {
 public:
  std::string name() const override { return "separate"; }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override;
  std::unique_ptr<Buffer> reserve(std::size_t bytes) override;
  void copy_in(BufferSlice to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override;
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override;
  void zero(BufferSlice to, std::size_t bytes) override;
  void launch(const Launch& l) override;

  std::atomic<long> launches{0}, copies_in{0}, copies_out{0};
};

// A loop kernel of this device.
class SeparateKernel final : public Kernel {
 public:
  SeparateKernel(codegen::Kernel k, std::vector<bool> same_index, Dim update_bytes);
  std::string name() const override { return ir_.name; }
  std::vector<Dim> sizes() const override { return sizes_; }
  bool in_place(std::size_t k) const override;
  void run(const void* const* in, void* out, std::span<const std::int64_t> sizes) const;  // called by the device

 private:
  codegen::Kernel ir_;
  // the IR's size symbols, the outer extent, the number of elements, bytes of an updated operand (or 0)
  std::vector<Dim> sizes_;
  std::vector<bool> same_index_;
  bool update_;
};

// Compiles for the device. Loops become its kernels; operations that move elements (scatter, sort, quantized blocks)
// stay with the host's interpreter.
Compiler separate(std::shared_ptr<Device> device);

}  // namespace lc::test
