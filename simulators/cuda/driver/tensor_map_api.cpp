// Tensor maps: arrays from which kernels copy boxes to shared memory. Each argument is checked as the documentation of
// cuTensorMapEncodeTiled requires, for maps without interleaving.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "driver/driver.h"
#include "scheduler/tile_copy.h"

using namespace lc::simulators::cuda;

namespace {

constexpr std::uint32_t kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};  // indexed by CUtensorMapDataType
constexpr std::uint32_t kSwizzleBytes[] = {1 << 30, 32, 64, 128};                   // greatest row of a box in bytes

struct Array {
  unsigned type, axes;
  std::uint64_t address;
  const std::uint64_t *extents, *strides;
  const std::uint32_t *box, *steps;
  int interleave, swizzle;
};

bool allowed(const Array& a) {
  if (a.type >= std::size(kElementBytes) || a.axes < 1 || a.axes > 5 || a.address % 16 != 0) return false;
  if (a.extents == nullptr || a.box == nullptr || a.steps == nullptr || (a.axes > 1 && a.strides == nullptr))
    return false;
  if (a.interleave != 0 || a.swizzle < 0 || a.swizzle > 3) return false;
  for (unsigned k = 0; k < a.axes; ++k) {
    if (a.extents[k] == 0 || a.extents[k] > std::uint64_t(1) << 32) return false;
    if (a.box[k] == 0 || a.box[k] > 256 || a.steps[k] == 0 || a.steps[k] > 8) return false;
    if (k > 0 && (a.strides[k - 1] == 0 || a.strides[k - 1] % 16 != 0 || a.strides[k - 1] >= std::uint64_t(1) << 40))
      return false;
  }
  const std::uint32_t row = a.box[0] * kElementBytes[a.type];
  return row % 16 == 0 && row <= kSwizzleBytes[a.swizzle];
}

}  // namespace

FAKE_CUDA_API int cuTensorMapEncodeTiled(void* map, unsigned type, unsigned axes, std::uint64_t address,
                                         const std::uint64_t* extents, const std::uint64_t* strides,
                                         const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                                         int swizzle, int /*promotion*/, int fill) {
  return driver_call(kInitialized, [&](Driver&) -> Code {
    const Array a{type, axes, address, extents, strides, box, steps, interleave, swizzle};
    if (map == nullptr || reinterpret_cast<std::uintptr_t>(map) % 64 != 0 || fill != 0 || !allowed(a))
      return kInvalidValue;
    fibers::TensorMap m;
    m.magic = fibers::TensorMap::kMagic, m.axes = axes, m.bytes = kElementBytes[type];
    m.swizzle = static_cast<std::uint32_t>(swizzle), m.address = address;
    for (unsigned k = 0; k < axes; ++k) {
      if (steps[k] != 1) return kInvalidValue;  // the shim supports no element strides
      m.extents[k] = static_cast<std::uint32_t>(std::min<std::uint64_t>(extents[k], ~0u)), m.box[k] = box[k];
      m.strides[k] = k == 0 ? m.bytes : strides[k - 1];
    }
    std::memset(map, 0, 128);
    std::memcpy(map, &m, sizeof m);
    return kSuccess;
  });
}
