// Channels-last convolutions in bf16: the tiles of nhwc.h over pairs of channels, which are contiguous in the image and
// one word when rounded. Operands are rounded to bf16 and summed in f32, as Precision::Medium allows.
//
// A task rounds the data it needs: for a padded image the rows that its windows reach, with zeros around them; for any
// other image the window of each pixel.
#pragma once

#include "lightcone/backends/cpu/conv/nhwc.h"

namespace lc::backends::cpu {

// The table of a target.
const NhwcBf16Table& nhwc_bf16_table(const Target& target);

// Returns why `c` cannot be multiplied in bf16; nullopt: it can.
std::optional<std::string> nhwc_bf16_refusal(const ConvPlan& c);
// Makes the kernel; nhwc_bf16_refusal(c) must be nullopt. `epilogue` may be null.
std::shared_ptr<HostKernel> nhwc_bf16_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Target& target, const Blocking& blocking = Blocking());

}  // namespace lc::backends::cpu
