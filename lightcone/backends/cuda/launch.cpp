#include "lightcone/backends/cuda/launch.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::backends::cuda {

namespace {

// Writes the tensor map of the array at `address`.
void encode(const Driver& driver, const gpu::TensorMap& m, api::Address address,
            std::span<std::uint64_t, kMapWords> to) {
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
  const api::Result r = driver.api().encode_tiled(map.words.data(), type, static_cast<std::uint32_t>(m.axes), address,
                                                  extents.data(), strides.data(), box.data(), steps.data(),
                                                  api::TensorMapInterleave::None, api::TensorMapSwizzle::Bytes128,
                                                  api::TensorMapPromotion::Bytes256, api::TensorMapFill::Zeros);
  if (r != api::Result::Success)
    throw Error("cuda", str_cat("the driver takes no map of an operand of ", m.axes, " axes: ", driver.words(r)));
  std::copy(map.words.begin(), map.words.end(), to.begin());
}

}  // namespace

KernelCall kernel_call(const gpu::KernelLaunch& s, const gpu::Limits& limits) {
  const auto refuse = [](std::string_view what, auto has, auto most) {
    throw Error("cuda",
                str_cat("a kernel was to be started with ", has, " ", what, ", and the device takes at most ", most));
  };
  if (s.grid_size < 0 || s.grid_size > limits.max_grid_size) refuse("groups", s.grid_size, limits.max_grid_size);
  if (s.block_size < 1 || s.block_size > limits.max_block_size)
    refuse("threads in a group", s.block_size, limits.max_block_size);
  if (s.shared > limits.shared) refuse("bytes of shared memory", s.shared, limits.shared);
  if (s.buffers.size() + s.sizes.size() > kMostArguments)
    refuse("arguments", s.buffers.size() + s.sizes.size(), kMostArguments);
  if (s.tensor_maps.size() > kMostMaps) refuse("maps", s.tensor_maps.size(), kMostMaps);
  const auto& code = *static_cast<const Module*>(s.code);
  return {
      code.function(s.function),       static_cast<unsigned>(s.grid_size),          static_cast<unsigned>(s.block_size),
      static_cast<unsigned>(s.shared), static_cast<unsigned>(s.tensor_maps.size()), code.overlaps(s.function)};
}

const StreamCall& stream_call(const gpu::LibraryCall& c) {
  const auto* work = dynamic_cast<const StreamCall*>(&c);
  if (!work) throw Error("cuda", "a library's call is for another device");
  return *work;
}

std::size_t write_call_words(std::span<const BufferSlice> buffers, std::span<const std::int64_t> sizes,
                             std::span<std::uint64_t, kMostCallWords> to) {
  check(buffers.size() + sizes.size() <= to.size(), "a library's call with too many buffers and sizes");
  std::size_t n = 0;
  for (const BufferSlice& p : buffers) to[n++] = address_of(p);
  for (const std::int64_t size : sizes) to[n++] = static_cast<std::uint64_t>(size);
  return n;
}

void write_words(const Driver& driver, const gpu::KernelLaunch& s, std::span<std::uint64_t> to) {
  std::size_t n = 0;
  for (const gpu::TensorMap& m : s.tensor_maps) {
    encode(driver, m, address_of(m.at), to.subspan(n).first<kMapWords>());
    n += kMapWords;
  }
  for (const BufferSlice& p : s.buffers) to[n++] = address_of(p);
  for (const std::int64_t size : s.sizes) to[n++] = static_cast<std::uint64_t>(size);
}

}  // namespace lc::backends::cuda
