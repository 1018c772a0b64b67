// Convolutions with channels last in bf16: the tiles of conv_last.h over pairs of channels, which lie side by side in
// the image and are one word when they are rounded. Operands are rounded to bf16 and summed in f32, as
// Precision::Medium allows.
//
// A task rounds what it needs: of a padded image the rows its windows reach, with zeros around them; of any other the
// window of each pixel.
#pragma once

#include "lightcone/backends/cpu/conv_last.h"

namespace lc::host {

// One instruction set's functions.
struct ConvLastBf16Table {
  const char* name;
  int mr, nr;
  // As ConvLastTable's; a tap is a word, and so are offsets.
  decltype(ConvLastTable::tile) tile;
  // n pixels of `count` channels, which lie `step` apart -> words, the last of which is filled up with a zero
  void (*round)(const float* from, std::int64_t from_pixel, std::int64_t step, std::int64_t n, std::int64_t count,
                std::uint32_t* to, std::int64_t to_pixel);
};
extern const ConvLastBf16Table kConvLastBf16Generic, kConvLastBf16Avx512Bf16;
const ConvLastBf16Table& conv_last_bf16_table(Isa isa);

// Can `c` be multiplied so? Not where there are no pairs of channels.
bool narrow_fits(const Convolution& c);
std::shared_ptr<const Kernel> convolution_last_bf16_kernel(const Convolution& c, std::shared_ptr<Parallel> parallel,
                                                           std::shared_ptr<const Epilogue> epilogue,
                                                           Isa isa = detect_isa(),
                                                           const Blocking& blocking = Blocking());

}  // namespace lc::host
