// One start of a kernel as the driver takes it: numbers of 64 bits, places as addresses before sizes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lightcone/backends/cuda/compile.h"
#include "lightcone/backends/cuda/memory.h"

namespace lc::nvidia {

inline constexpr std::size_t kMostArguments = gpu::kMostPlaces + gpu::kMostSizes;

// Where a place of this device lies; 0 for none.
inline api::Address address_of(const Place& p) {
  return p ? static_cast<const DeviceBuffer*>(p.buffer)->address() + p.offset : 0;
}

struct KernelCall {
  api::Function* function = nullptr;
  unsigned groups = 1, threads = 1, shared = 0;
  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};
// An Error for what no driver takes.
KernelCall kernel_call(const gpu::Start& s, const gpu::Limits& limits);

// Arguments as the driver wants them: where each lies.
class Pointers {
 public:
  explicit Pointers(std::span<const std::uint64_t> values) {
    for (std::size_t k = 0; k < values.size(); ++k) all_[k] = const_cast<std::uint64_t*>(&values[k]);
  }
  void** data() { return all_.data(); }

 private:
  std::array<void*, kMostArguments> all_;
};

inline api::Result start_kernel(const api::Driver& a, api::Stream* stream, const KernelCall& c,
                                std::span<const std::uint64_t> values) {
  Pointers p(values);
  return a.launch(c.function, c.groups, 1, 1, c.threads, 1, 1, c.shared, stream, p.data(), nullptr);
}

}  // namespace lc::nvidia
