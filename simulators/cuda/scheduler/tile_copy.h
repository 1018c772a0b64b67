// Copies of boxes of arrays to shared memory, and the phases on which threads and such copies synchronize. On a device
// of compute capability 9.0 these are cp.async.bulk.tensor and mbarrier.
#pragma once
#include <cstdint>

namespace fibers {

// The content that the simulated cuTensorMapEncodeTiled writes into its 128 bytes. Axes are innermost first.
struct TensorMap {
  static constexpr std::uint32_t kMagic = 0x4c434d50;
  std::uint32_t magic = 0, axes = 0, bytes = 0;  // bytes: size of an element
  std::uint32_t swizzle = 0;                     // 3: 16-byte chunks are permuted within 128 bytes
  std::uint64_t address = 0;
  std::uint64_t strides[5] = {};  // in bytes
  std::uint32_t extents[5] = {}, box[5] = {};

  std::uint32_t box_bytes() const {
    std::uint32_t n = bytes;
    for (std::uint32_t k = 0; k < axes; ++k) n *= box[k];
    return n;
  }
};
static_assert(sizeof(TensorMap) <= 128);

struct TileCopy {
  TensorMap map;
  unsigned char* to;
  int at[5];  // coordinates of the box's first element
  void* phase;
};
// Writes the box; elements outside the array are zero.
void copy_tile(const TileCopy& c);

// The content of a phase, eight bytes of shared memory. The phase ends when all announced threads have arrived and all
// expected bytes have been received.
struct Phase {
  static constexpr std::uint8_t kMagic = 0xb7;
  std::uint8_t magic, parity, arrivals, missing;
  std::int32_t bytes;

  void begin(unsigned count) {
    magic = kMagic, parity = 0, bytes = 0;
    arrivals = missing = static_cast<std::uint8_t>(count);
  }
  bool ended(unsigned which) const { return parity != which; }
  // Counts an arrival and the bytes it expects; returns true if the phase ends. The caller detects excess arrivals.
  bool arrive(int expected) { return bytes += expected, --missing, turn(); }
  bool receive(int received) { return bytes -= received, turn(); }

 private:
  bool turn() {
    if (missing != 0 || bytes != 0) return false;
    missing = arrivals, parity ^= 1;
    return true;
  }
};
static_assert(sizeof(Phase) == 8);

}  // namespace fibers
