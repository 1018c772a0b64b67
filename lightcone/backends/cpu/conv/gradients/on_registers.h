// Gradients of filters in bf16 on tile registers, for contiguous channels and several images.
//
// A number of a register is a pair of images at one pixel, so that the window of a tap is a shift by whole numbers.
// Both factors are rounded once, and every tap reads the same copy: the image with zeros around it, and the cotangent
// transposed, so that a row of a register is a channel. Zeros are multiplied, as in the sums that are defined.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lightcone/backends/cpu/conv/plan/conv_plan.h"
#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/target/blocking.h"
#include "lightcone/backends/cpu/target/target.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::backends::cpu {

// The functions for the target's tiles; for emulated ones if those are asked for or it has none.
const GradientTilesTable& gradient_tiles(const Target& target);
// Returns why `c`, which filter_gradient_shape() knows, cannot be computed this way; nullopt: it can.
std::optional<std::string> gradient_registers_refusal(const ConvPlan& c);
// Makes the kernel; gradient_registers_refusal(c) must be nullopt.
std::shared_ptr<HostKernel> gradient_registers_kernel(const ConvPlan& c, const GradientTilesTable& table,
                                                      const Blocking& blocking = Blocking());

}  // namespace lc::backends::cpu
