// A device whose memory the host may not touch: its pages are open while one of its kernels runs or one of its copies
// is under way, and at no other time. It runs the kernel IR, by the interpreter of that, and so any graph.
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

// Pages that are closed.
class ClosedBuffer final : public Buffer {
 public:
  ClosedBuffer(std::size_t bytes, bool reserved);
  ~ClosedBuffer() override;
  bool commit(std::size_t at, std::size_t bytes) override;
  std::size_t committed() const override;
  std::byte* address() const { return data_; }  // for the device, and for a test that wants to see the fault

  class Open {  // while it lives; several at once
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
  std::size_t pages_ = 0;                      // bytes
  std::map<std::size_t, std::size_t> ranges_;  // committed ones, whole pages: where each begins and ends
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

// A loop nest for it.
class SeparateKernel final : public Kernel {
 public:
  SeparateKernel(codegen::Kernel k, std::vector<bool> same_index, Dim update_bytes);
  std::string name() const override { return ir_.name; }
  std::vector<Dim> sizes() const override { return sizes_; }
  bool in_place(std::size_t k) const override;
  void run(const void* const* in, void* out, std::span<const std::int64_t> sizes) const;  // what the device calls

 private:
  codegen::Kernel ir_;
  std::vector<Dim> sizes_;  // the IR's own, the outer extent, elements stored, bytes of what is overwritten in part
  std::vector<bool> same_index_;
  bool update_;
};

// Compiles for it: loops are its kernels, and what elements are moved by (scatter, sort, block formats) is left to
// the interpreter on the host.
Compiler separate(std::shared_ptr<Device> device);

}  // namespace lc::test
