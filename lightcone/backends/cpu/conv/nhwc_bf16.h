// Convolutions with channels last in bf16: the tiles of nhwc.h over pairs of channels, which lie side by side in
// the image and are one word when they are rounded. Operands are rounded to bf16 and summed in f32, as
// Precision::Medium allows.
//
// A task rounds what it needs: of a padded image the rows its windows reach, with zeros around them; of any other the
// window of each pixel.
#pragma once

#include "lightcone/backends/cpu/conv/nhwc.h"

namespace lc::backends::cpu {

// One instruction set's functions.
struct NhwcBf16Table {
  const char* name;
  int mr, nr;
  // As NhwcTable's; a tap is a word, and so are offsets.
  decltype(NhwcTable::tile) tile;
  // n pixels of `count` channels, which lie `step` apart -> words, the last of which is filled up with a zero
  void (*round)(const float* from, std::int64_t from_pixel, std::int64_t step, std::int64_t n, std::int64_t count,
                std::uint32_t* to, std::int64_t to_pixel);
};
extern const NhwcBf16Table kNhwcBf16Generic, kNhwcBf16Avx512Bf16;
const NhwcBf16Table& nhwc_bf16_table(const Target& target);

// Can `c` be multiplied so? Not where there are no pairs of channels.
bool nhwc_bf16_fits(const ConvPlan& c);
std::shared_ptr<HostKernel> nhwc_bf16_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Target& target, const Blocking& blocking = Blocking());

}  // namespace lc::backends::cpu
