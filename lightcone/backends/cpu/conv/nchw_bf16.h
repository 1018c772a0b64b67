// Convolutions in bf16: a product of the filters and the image's windows by the microkernels of microkernel.h. Operands
// are rounded to bf16 and summed in f32, as Precision::Medium allows.
//
// Sums run over pairs of channels, in the layout in which microkernels read B: [pair][tap][pixel][2]. A task rounds the
// image rows it needs into planes of such pairs, with padding around them; a stride of two splits each row into four
// phases, of even and odd rows and columns. In the planes every tap is a shift, and a panel of B is gathered from
// shifted rows. An image without padding or overlapping windows is rounded straight into panels.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/backends/cpu/products/microkernel.h"

namespace lc::backends::cpu {

// A bf16 convolution with all its offsets.
struct NchwBf16 {
  const Microkernel* unit;
  WeightType stored;  // type of the weights: f32 or bf16
  std::int64_t rows, out_row, pixels, groups;
  struct Axis {
    std::int64_t extent = 1, step = 1, unit = 0;  // output pixels; coordinates between pixels; floats per coordinate
    std::int64_t lo = 0, hi = 0;                  // coordinates that are read; others are zeros
    std::int64_t phases = 1, length = 1;
  };
  Axis y, x;
  bool planes = false;                     // false: panels are read from the image
  std::int64_t row_words = 0;              // words (pairs) of a plane's row, all phases included
  std::vector<std::int64_t> channels;      // offset of each channel in the image; an even count
  std::vector<std::int64_t> shift;         // offset of each tap in a plane
  std::vector<std::int64_t> weights;       // offset in a filter of each pair, tap and half, or kNoChannel
  std::vector<std::int64_t> group_weight;  // offset of each group's weights
  std::int64_t weight_row = 0;

  std::int64_t depth() const { return static_cast<std::int64_t>(weights.size()); }
  std::int64_t group_bytes() const { return (rows + unit->mr - 1) / unit->mr * unit->a_bytes(depth()); }
};
// Makes the plan; null if sizes other than the batch's are symbolic, or the image is not read along two axes. `unit`
// must multiply pairs of bf16 faster than f32.
std::shared_ptr<const NchwBf16> make_nchw_bf16(const ConvPlan& c, WeightType stored, const Microkernel& unit);
// Returns why `c` is not multiplied in bf16 (the caller checks the precision): the weights must be a parameter without
// other readers, and bf16 must be fast on the target. `uses` counts the readers of the graph's nodes; `winograd` leaves
// to Winograd's algorithm what it does faster. It may request AMX tiles (target.h).
std::optional<std::string> nchw_bf16_refusal(const Graph& g, std::span<const int> uses, bool winograd,
                                             const Target& target, const ConvPlan& c);
// Sets c.nchw_bf16, and the weights to the stored parameter; nchw_bf16_refusal() must be nullopt.
void plan_nchw_bf16(const Graph& g, const Target& target, ConvPlan& c);

// Makes the kernel; c.nchw_bf16 must be set. `epilogue` may be null.
std::shared_ptr<HostKernel> nchw_bf16_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Blocking& blocking = Blocking());
// Makes the kernel that packs filters as strips of A, [group][strip][all of k], in blocks of kTileDepth k.
std::shared_ptr<HostKernel> pack_nchw_bf16_kernel(std::shared_ptr<const NchwBf16> pairs);

}  // namespace lc::backends::cpu
