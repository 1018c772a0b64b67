// One start of a kernel as the driver takes it: numbers of 64 bits, those of maps, places as addresses, sizes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lightcone/backends/cuda/compile.h"
#include "lightcone/backends/cuda/memory.h"

namespace lc::backends::cuda {

inline constexpr std::size_t kMapWords = 16;                                      // of a map: the driver's CUtensorMap
inline constexpr std::size_t kMostMaps = 2;                                       // of a start
inline constexpr std::size_t kMostArguments = gpu::kMaxBuffers + gpu::kMaxSizes;  // but maps
inline constexpr std::size_t kMostWords = kMostMaps * kMapWords + kMostArguments;

// Where a place of this device lies; 0 for none.
inline api::Address address_of(const BufferSlice& p) {
  return p ? static_cast<const DeviceBuffer*>(p.buffer)->address() + p.offset : 0;
}

struct KernelCall {
  api::Function* function = nullptr;
  unsigned groups = 1, threads = 1, shared = 0, maps = 0;
  bool overlaps = false;  // it may begin before the launch in front of it has ended, for which it waits itself
  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};
// An Error for what no driver takes.
KernelCall kernel_call(const gpu::KernelLaunch& s, const gpu::Limits& limits);

// How many words the arguments of a start are, and what they are. An Error for a map that the driver does not take.
inline std::size_t words_of(const gpu::KernelLaunch& s) {
  return s.tensor_maps.size() * kMapWords + s.buffers.size() + s.sizes.size();
}
void write_words(const Driver& driver, const gpu::KernelLaunch& s, std::span<std::uint64_t> to);

// Arguments as the driver wants them: where each lies.
class Pointers {
 public:
  Pointers(std::span<const std::uint64_t> values, std::size_t maps) {
    std::size_t k = 0;
    for (std::size_t at = 0; at < values.size(); at += k <= maps ? kMapWords : 1)
      all_[k++] = const_cast<std::uint64_t*>(&values[at]);
  }
  void** data() { return all_.data(); }

 private:
  std::array<void*, kMostMaps + kMostArguments> all_;
};

inline api::Result start_kernel(const api::Driver& a, api::Stream* stream, const KernelCall& c,
                                std::span<const std::uint64_t> values) {
  Pointers p(values, c.maps);
  if (c.overlaps) {
    const api::LaunchAttribute overlap;
    const api::LaunchConfig config{{c.groups, 1, 1}, {c.threads, 1, 1}, c.shared, stream, &overlap, 1};
    return a.launch_with(&config, c.function, p.data(), nullptr);
  }
  return a.launch(c.function, c.groups, 1, 1, c.threads, 1, 1, c.shared, stream, p.data(), nullptr);
}

}  // namespace lc::backends::cuda
