// A device's memory: blocks of the driver's, which are kept for reuse when they are freed, and ranges of addresses that
// get memory piece by piece.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lightcone/backends/cuda/stream.h"
#include "lightcone/device/device.h"

namespace lc::backends::cuda {

// A buffer of the device. All commands on it go to one stream.
class DeviceBuffer : public Buffer {
 public:
  api::Address address() const { return address_; }

 protected:
  DeviceBuffer(std::size_t bytes, api::Address address) : Buffer(bytes), address_(address) {}
  api::Address address_;
};

// Allocates a device's memory. A freed block may be reused while kernels still run on it, because all commands go to
// one stream. It may be used from several threads.
class Memory : public std::enable_shared_from_this<Memory> {
 public:
  explicit Memory(std::shared_ptr<Stream> stream);
  ~Memory();

  // Returns zeroed memory at a multiple of 256 bytes. Throws Error if there is not enough.
  std::unique_ptr<Buffer> allocate(std::size_t bytes);
  // As Device::reserve(). Returns null if the device has not enough addresses, or, if it cannot reserve, not enough
  // memory.
  std::unique_ptr<Buffer> reserve(std::size_t bytes);

  Stream& stream() const { return *stream_; }
  // Returns the kept blocks to the driver.
  void trim();
  // Calls `take`, which allocates memory of the driver; after OutOfMemory, calls it once more after a trim(). Returns
  // false if there is not enough memory even then.
  template <class Take>
  bool take_from_driver(const Take& take) {
    stream_->context().enter();
    api::Result r = take(stream_->context().api());
    if (r == api::Result::OutOfMemory) {
      trim();
      r = take(stream_->context().api());
    }
    if (r == api::Result::OutOfMemory) return false;
    stream_->context().check(r, "allocate memory");
    return true;
  }

 private:
  friend class Block;
  std::unique_ptr<Buffer> allocate_or_null(std::size_t bytes);
  void give(api::Address at, std::size_t bytes) noexcept;

  std::shared_ptr<Stream> stream_;
  std::size_t granule_ = 0;    // granularity of reserved memory; 0: the device cannot reserve
  std::size_t most_kept_ = 0;  // bytes
  std::mutex mutex_;           // guards the fields below
  std::size_t kept_ = 0;
  std::multimap<std::size_t, api::Address> free_;  // kept blocks, by size
};

}  // namespace lc::backends::cuda
