// Device: memory, and what runs kernels on it. Programs and contexts touch a device's bytes through it alone.
//
// Work is done in the order in which it was asked for, perhaps later: copy_out() and synchronise() wait for what was
// asked before them. Several threads may use one device at once, each with buffers of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/device/kernel.h"
#include "lightcone/device/parallel.h"

namespace lc {

// A piece of a device's memory. It lives no longer than its device; what still runs on it is waited for.
class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::size_t size() const { return bytes_; }
  // Where the host finds its first byte; null when the device has memory of its own.
  std::byte* host() const { return host_; }
  // Of a reserved buffer: from now on this piece may be used. False when there is no memory for it. What is committed
  // already costs nothing.
  virtual bool commit(std::size_t /*at*/, std::size_t /*bytes*/) { return true; }
  virtual std::size_t committed() const { return bytes_; }

 protected:
  explicit Buffer(std::size_t bytes, std::byte* host = nullptr) : bytes_(bytes), host_(host) {}

 private:
  std::size_t bytes_;
  std::byte* host_;
};

struct BufferSlice {
  Buffer* buffer = nullptr;
  std::size_t offset = 0;
  explicit operator bool() const { return buffer; }
  BufferSlice offset_by(std::size_t bytes) const { return {buffer, offset + bytes}; }
  std::byte* host() const { return buffer && buffer->host() ? buffer->host() + offset : nullptr; }
  friend bool operator==(const BufferSlice&, const BufferSlice&) = default;
};

struct Launch {
  const Kernel* kernel = nullptr;
  std::span<const BufferSlice> in;  // whole operand buffers; views are the kernel's business
  BufferSlice out;
  std::span<const std::int64_t> sizes;  // the values of Kernel::sizes(), in order
  BufferSlice scratch;                  // scratch_bytes(), 64-byte aligned
  // This one and the next may run side by side, and so may all of a row of such launches: none reads or writes what
  // another writes.
  bool concurrent_with_next = false;
};

// Launches that are run again and again.
class Recording {
 public:
  virtual ~Recording() = default;
  // Reads them anew: places and sizes are other ones, kernels are not. Before the first run, too.
  virtual void update() {}
  // Launches [first, last), in order.
  virtual void run(std::size_t first, std::size_t last) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // Does the host read and write its buffers where they are (Buffer::host())? Then nothing is copied for it.
  virtual bool shares_host_memory() const { return false; }
  // How many scratch memory is planned for; with one, nothing is launched side by side.
  virtual int workers() const { return 1; }
  // The threads of the host that run its kernels, where it is the host.
  virtual std::shared_ptr<Parallel> parallel() const { return nullptr; }

  // Zeroed, 64-byte aligned, also of no bytes. An Error when there is not so much.
  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  // The same for what is written little by little, as a cache is by a text that grows: where the device can, it takes
  // the memory that was touched.
  virtual std::unique_ptr<Buffer> allocate_sparse(std::size_t bytes) { return allocate(bytes); }
  // Addresses whose memory comes when it is committed, zeroed. Null where there are not so many, or never any: then
  // memory is allocated for the sizes at hand.
  virtual std::unique_ptr<Buffer> reserve(std::size_t bytes);
  // The caller's memory as a buffer, not copied. Null where the device cannot reach it.
  virtual std::unique_ptr<Buffer> lend(void* /*data*/, std::size_t /*bytes*/) { return nullptr; }

  // When copy_in() returns, `from` may be changed; when copy_out() returns, `to` is there.
  virtual void copy_in(BufferSlice to, const void* from, std::size_t bytes) = 0;
  virtual void copy_out(void* to, BufferSlice from, std::size_t bytes) = 0;
  virtual void copy(BufferSlice to, BufferSlice from, std::size_t bytes) = 0;  // which do not overlap
  virtual void zero(BufferSlice to, std::size_t bytes) = 0;

  virtual void launch(const Launch& l) = 0;
  // The launches, and all that they point to, stay where they are as long as the recording. An Error for a kernel that
  // is not for this device.
  virtual std::unique_ptr<Recording> record(std::span<const Launch> launches);
  virtual void synchronise() {}
};

// The bytes of a place for the host to read: where they are, or a copy.
class HostView {
 public:
  HostView(Device& device, BufferSlice at, std::size_t bytes);
  HostView(HostView&&) = default;
  HostView& operator=(HostView&&) = default;
  const std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> copy_;
  const std::byte* data_;
};

}  // namespace lc
