// Copies between the host's memory and the device's, through memory of the host that the device reads and writes by
// itself: the next piece is copied there while the last one is on its way.
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
  // When this returns, `from` may be changed.
  void copy_in(api::Address to, const std::byte* from, std::size_t bytes);
  // When this returns, `to` is there.
  void copy_out(std::byte* to, api::Address from, std::size_t bytes);

 private:
  // Memory of the host that stays where it is, and the moment from which on it may be used again.
  struct Slot {
    explicit Slot(const Context& c);
    ~Slot();
    const Context& context;
    std::byte* data = nullptr;
    Event done;
    std::size_t used = 0;  // bytes on their way to the device
  };
  class Borrowed;
  std::size_t put(api::Address to, const std::byte* from, std::size_t bytes);

  Stream& stream_;
  std::mutex mutex_;                         // guards what follows
  std::array<std::unique_ptr<Slot>, 4> in_;  // in turn
  std::size_t current_ = 0;
  std::vector<std::unique_ptr<Slot>> out_;  // that nobody uses
};

}  // namespace lc::backends::cuda
