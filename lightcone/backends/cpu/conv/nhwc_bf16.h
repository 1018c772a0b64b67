// Channels-last convolutions in bf16: the tiles of nhwc.h over pairs of channels, which are contiguous in the image and
// one word when rounded. Operands are rounded to bf16 and summed in f32, as Precision::Medium allows.
//
// A task rounds the data it needs: for a padded image the rows that its windows reach, with zeros around them; for any
// other image the window of each pixel. An image of bf16 (ConvPlan::bf16_image) is copied as it is if it is padded, and
// read where it is otherwise.
#pragma once

#include "lightcone/backends/cpu/conv/nhwc.h"

namespace lc::backends::cpu {

// The table of a target.
const NhwcBf16Table& nhwc_bf16_table(const Target& target);

// Returns why `c` cannot be multiplied in bf16; nullopt: it can.
std::optional<std::string> nhwc_bf16_refusal(const ConvPlan& c);
// Returns whether the kernel reads an image of bf16.
bool nhwc_bf16_reads_bf16(const ConvPlan& c);
// Makes the kernel; nhwc_bf16_refusal(c) must be nullopt. `epilogue` may be null.
std::shared_ptr<HostKernel> nhwc_bf16_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Target& target, const Blocking& blocking = Blocking());

// ---- on tile registers (nhwc_registers.cpp) --------------------------------------------------------
//
// A register holds neighbouring pixels of a row, 32 channels of each. A task rounds the rows of the image that it
// needs, with zeros around them, to planes of 32 channels, in which every tap is a shift: nothing is gathered, and
// every row of a register is a cache line. Of up to four channels, as pictures have, a row of a register is a row of a
// pixel's window instead: up to eight pixels of four channels. Sums are added in one order, whatever the tasks are.

// The functions for the target's tiles; for emulated ones if those are asked for or it has none.
const ConvTilesTable& conv_tiles(const Target& target);

// Windows of few channels: their rows, the pixels of a row, and its channels, with strides in the data that is read.
struct NarrowWindow {
  static constexpr std::int64_t kPixels = 8, kChannels = 4;
  NhwcShape::Sum down{1, 0, 0}, across{1, 0, 0}, channels{1, 0, 0};
};
// Returns the window of a shape that is read from a copy; nullopt if a row of it is no row of a register.
std::optional<NarrowWindow> narrow_window(const NhwcShape& s);

// Returns why `c` cannot be computed this way; nullopt: it can.
std::optional<std::string> nhwc_registers_refusal(const ConvPlan& c);
// Returns whether the kernel reads an image of bf16.
bool nhwc_registers_reads_bf16(const ConvPlan& c);
// Makes the kernel; nhwc_registers_refusal(c) must be nullopt. `epilogue` may be null.
std::shared_ptr<HostKernel> nhwc_registers_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                                  const ConvTilesTable& table, const Blocking& blocking = Blocking());

}  // namespace lc::backends::cpu
