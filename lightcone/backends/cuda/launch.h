// A launch of a kernel as the driver takes it. Its arguments are 64-bit words: those of tensor maps, addresses of
// buffers, sizes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lightcone/backends/cuda/compile.h"
#include "lightcone/backends/cuda/memory.h"

namespace lc::backends::cuda {

inline constexpr std::size_t kMapWords = 16;  // words of a map, the driver's CUtensorMap
inline constexpr std::size_t kMostMaps = 2;   // per launch
inline constexpr std::size_t kMostArguments = gpu::kMaxBuffers + gpu::kMaxSizes;  // without maps
inline constexpr std::size_t kMostWords = kMostMaps * kMapWords + kMostArguments;

// Returns the address of a slice of this device's memory; 0 for none.
inline api::Address address_of(const BufferSlice& p) {
  return p ? static_cast<const DeviceBuffer*>(p.buffer)->address() + p.offset : 0;
}

struct KernelCall {
  api::Function* function = nullptr;
  unsigned groups = 1, threads = 1, shared = 0, maps = 0;
  bool overlaps = false;  // it may begin before the previous launch has ended, for which the kernel itself waits
  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};
// Throws Error if the launch exceeds the device's limits.
KernelCall kernel_call(const gpu::KernelLaunch& s, const gpu::Limits& limits);

// Returns how many words the arguments of a launch are.
inline std::size_t words_of(const gpu::KernelLaunch& s) {
  return s.tensor_maps.size() * kMapWords + s.buffers.size() + s.sizes.size();
}
// Writes the arguments' words. Throws Error if the driver does not take a map.
void write_words(const Driver& driver, const gpu::KernelLaunch& s, std::span<std::uint64_t> to);

// Returns a library's call as this device runs it. Throws Error if it is another device's.
const StreamCall& stream_call(const gpu::LibraryCall& c);
// Writes the words of a call, and returns how many they are.
std::size_t write_call_words(std::span<const BufferSlice> buffers, std::span<const std::int64_t> sizes,
                             std::span<std::uint64_t, kMostCallWords> to);

// The arguments as the driver takes them: a pointer to each.
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
