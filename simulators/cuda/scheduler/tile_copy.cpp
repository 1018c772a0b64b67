#include "scheduler/tile_copy.h"

#include <cstring>

namespace fibers {

void copy_tile(const TileCopy& c) {
  const TensorMap& m = c.map;
  const std::uint32_t row = m.box[0] * m.bytes;
  std::uint32_t rows = 1;
  for (std::uint32_t k = 1; k < m.axes; ++k) rows *= m.box[k];
  for (std::uint32_t r = 0; r < rows; ++r) {
    bool inside = true;
    std::uint64_t from = m.address;
    for (std::uint32_t k = 1, rest = r; k < m.axes; rest /= m.box[k++]) {
      const std::int64_t at = std::int64_t(c.at[k]) + rest % m.box[k];
      inside = inside && at >= 0 && at < std::int64_t(m.extents[k]);
      from += static_cast<std::uint64_t>(at) * m.strides[k];
    }
    for (std::uint32_t e = 0; e < m.box[0]; ++e) {
      const std::int64_t at = std::int64_t(c.at[0]) + e;
      auto to = reinterpret_cast<std::uintptr_t>(c.to) + r * row + e * m.bytes;
      if (m.swizzle == 3) to ^= (to >> 7 & 7) << 4;  // permutes chunks within eight rows of 128 bytes, by the address
      if (inside && at >= 0 && at < std::int64_t(m.extents[0]))
        std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from + std::uint64_t(at) * m.bytes),
                    m.bytes);
      else std::memset(reinterpret_cast<void*>(to), 0, m.bytes);
    }
  }
}

}  // namespace fibers
