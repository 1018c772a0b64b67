// Copies between the host's memory and the device's, through pinned memory of the host that the device reads and writes
// by itself: a piece is copied there while the previous one is being transferred.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "lightcone/backends/cuda/stream.h"

namespace lc::backends::cuda {

class Staging {
 public:
  explicit Staging(Stream& stream) : stream_(stream) {}
  // Returns when `from` may be changed.
  void copy_in(api::Address to, const std::byte* from, std::size_t bytes);
  // Returns when `to` is filled.
  void copy_out(std::byte* to, api::Address from, std::size_t bytes);

 private:
  // Pinned memory of the host, and the event after which it may be used again.
  struct Slot {
    explicit Slot(const Context& c);
    ~Slot();
    const Context& context;
    std::byte* data = nullptr;
    Event done;
    std::size_t used = 0;  // bytes in transfer to the device
  };
  class Borrowed;
  std::size_t put(api::Address to, const std::byte* from, std::size_t bytes);

  Stream& stream_;
  std::mutex mutex_;                         // guards the fields below
  std::array<std::unique_ptr<Slot>, 4> in_;  // used in turn
  std::size_t current_ = 0;
  std::vector<std::unique_ptr<Slot>> out_;  // slots that are not in use
};

}  // namespace lc::backends::cuda
