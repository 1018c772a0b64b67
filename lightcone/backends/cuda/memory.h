// A device's memory: blocks of the driver's, which are kept when they are given back, and ranges of addresses that get
// memory piece by piece.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lightcone/backends/cuda/stream.h"
#include "lightcone/device/device.h"

namespace lc::backends::cuda {

// A buffer of the device: all that is done to it happens in one stream.
class DeviceBuffer : public Buffer {
 public:
  api::Address address() const { return address_; }

 protected:
  DeviceBuffer(std::size_t bytes, api::Address address) : Buffer(bytes), address_(address) {}
  api::Address address_;
};

// Because everything happens in one stream, a block may be handed out again while kernels still run on it.
class Memory : public std::enable_shared_from_this<Memory> {
 public:
  explicit Memory(std::shared_ptr<Stream> stream);
  ~Memory();

  // Zeroed, at a multiple of 256. Error when there is not so much.
  std::unique_ptr<Buffer> allocate(std::size_t bytes);
  // As Device::reserve(): null when the device has not so many addresses, or not so much memory where it cannot
  // reserve.
  std::unique_ptr<Buffer> reserve(std::size_t bytes);

  Stream& stream() const { return *stream_; }
  // Gives the driver back what nobody uses.
  void trim();
  // `take` asks the driver for memory; once more after a trim(), when there is none. False when there is none then.
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
  std::size_t granule_ = 0;    // of reserved memory; 0: the device cannot reserve
  std::size_t most_kept_ = 0;  // bytes
  std::mutex mutex_;           // guards what follows
  std::size_t kept_ = 0;
  std::multimap<std::size_t, api::Address> free_;  // blocks that nobody uses, by their size
};

}  // namespace lc::backends::cuda
