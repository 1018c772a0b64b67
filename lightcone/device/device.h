// The interface of devices: their memory, and how kernels run on it. Programs and contexts access a device's bytes only
// through it.
//
// Operations execute in the order in which they are issued, possibly asynchronously: copy_out() and synchronise() wait
// for everything issued before them. Several threads may use one device at once, each with its own buffers.
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

// A block of device memory. It must not outlive its device. The destructor waits for operations that still use it.
class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::size_t size() const { return bytes_; }
  // Returns the host address of the first byte, or null if the device has its own memory.
  std::byte* host() const { return host_; }
  // Makes a piece of a reserved buffer usable. Returns false if there is no memory for it. Committing a piece again is
  // free.
  virtual bool commit(std::size_t /*at*/, std::size_t /*bytes*/) { return true; }
  // Returns the number of bytes committed so far.
  virtual std::size_t committed() const { return bytes_; }

 protected:
  explicit Buffer(std::size_t bytes, std::byte* host = nullptr) : bytes_(bytes), host_(host) {}

 private:
  std::size_t bytes_;
  std::byte* host_;
};

// A location in a buffer. It does not own the buffer.
struct BufferSlice {
  Buffer* buffer = nullptr;
  std::size_t offset = 0;
  explicit operator bool() const { return buffer; }
  BufferSlice offset_by(std::size_t bytes) const { return {buffer, offset + bytes}; }
  std::byte* host() const { return buffer && buffer->host() ? buffer->host() + offset : nullptr; }
  friend bool operator==(const BufferSlice&, const BufferSlice&) = default;
};

// One run of a kernel. All slices are on the device that runs it.
struct Launch {
  const Kernel* kernel = nullptr;
  std::span<const BufferSlice> in;  // whole operand buffers; the kernel applies views itself
  BufferSlice out;
  std::span<const std::int64_t> sizes;  // the values of Kernel::sizes(), in order
  BufferSlice scratch;                  // Kernel::scratch_bytes() bytes, 64-byte aligned
  // This launch and the next may run concurrently, and so may a whole sequence of such launches: none of them reads or
  // writes what another one writes.
  bool concurrent_with_next = false;
};

// A sequence of launches that is run repeatedly.
class Recording {
 public:
  virtual ~Recording() = default;
  // Rebinds buffers and sizes; kernels stay the same. Call it before the first run and whenever they change.
  virtual void update() {}
  // Runs the launches [first, last) in order.
  virtual void run(std::size_t first, std::size_t last) = 0;
};

// A device that holds buffers and runs kernels.
class Device {
 public:
  virtual ~Device() = default;
  // Returns the device's name for messages, such as "host".
  virtual std::string name() const = 0;
  // Returns true if the host reads and writes buffers in place (Buffer::host()), so nothing is copied for it.
  virtual bool shares_host_memory() const { return false; }
  // Returns the number of workers for which kernels get scratch memory. With one, no launches run concurrently.
  virtual int workers() const { return 1; }
  // Returns the host's threads if this device is the host, otherwise null.
  virtual std::shared_ptr<Parallel> parallel() const { return nullptr; }

  // Allocates zeroed memory, 64-byte aligned; zero bytes are allowed. Throws Error if there is not enough memory.
  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  // Allocates memory that is filled little by little, such as the cache of a growing text. If the device can, only
  // touched pages take memory.
  virtual std::unique_ptr<Buffer> allocate_sparse(std::size_t bytes) { return allocate(bytes); }
  // Reserves addresses that get zeroed memory when they are committed. Returns null if there are not enough addresses
  // or the device has no such memory; the caller then allocates memory for the current sizes.
  virtual std::unique_ptr<Buffer> reserve(std::size_t bytes);
  // Wraps the caller's memory as a buffer without a copy. Returns null if the device cannot access it.
  virtual std::unique_ptr<Buffer> lend(void* /*data*/, std::size_t /*bytes*/) { return nullptr; }

  // Copies host memory to the device. `from` may be changed after the return.
  virtual void copy_in(BufferSlice to, const void* from, std::size_t bytes) = 0;
  // Copies device memory to the host. `to` is complete at the return.
  virtual void copy_out(void* to, BufferSlice from, std::size_t bytes) = 0;
  // Copies between two slices that do not overlap.
  virtual void copy(BufferSlice to, BufferSlice from, std::size_t bytes) = 0;
  // Fills a slice with zeros.
  virtual void zero(BufferSlice to, std::size_t bytes) = 0;

  // Runs one kernel. Throws Error for a kernel of another device.
  virtual void launch(const Launch& l) = 0;
  // Prepares launches for repeated runs. The launches and everything they point to must stay in place as long as the
  // recording lives. Throws Error for a kernel of another device.
  virtual std::unique_ptr<Recording> record(std::span<const Launch> launches);
  // Waits for all operations issued so far.
  virtual void synchronise() {}
};

// Gives the host read access to a slice: to the memory itself if it is shared, otherwise to a copy.
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
