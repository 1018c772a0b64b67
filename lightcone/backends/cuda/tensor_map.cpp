#include "lightcone/backends/cuda/tensor_map.h"

#include <array>

#include "lightcone/core/error.h"

namespace lc::nvidia {

void encode(const Driver& driver, const gpu::TileMap& m, api::Address address, std::span<std::uint64_t, kMapWords> to) {
  struct alignas(64) Map {
    std::array<std::uint64_t, kMapWords> words{};
  } map;
  std::array<std::uint64_t, gpu::kMostAxes> extents{}, strides{};
  std::array<std::uint32_t, gpu::kMostAxes> box{}, steps{};
  for (std::size_t k = 0; k < m.axes; ++k) {
    extents[k] = static_cast<std::uint64_t>(m.extents[k]);
    if (k > 0) strides[k - 1] = static_cast<std::uint64_t>(m.strides[k]);
    box[k] = static_cast<std::uint32_t>(m.box[k]), steps[k] = 1;
  }
  const auto type = m.bytes == 1 ? api::TensorMapType::U8 : api::TensorMapType::U16;
  const api::Result r = driver.api().encode_tiled(
      map.words.data(), type, static_cast<std::uint32_t>(m.axes), address, extents.data(), strides.data(), box.data(),
      steps.data(), api::TensorMapInterleave::None, api::TensorMapSwizzle::Bytes128, api::TensorMapPromotion::Bytes256,
      api::TensorMapFill::Zeros);
  if (r != api::Result::Success)
    throw Error("cuda", str_cat("the driver takes no map of an operand of ", m.axes, " axes: ", driver.words(r)));
  std::copy(map.words.begin(), map.words.end(), to.begin());
}

}  // namespace lc::nvidia
