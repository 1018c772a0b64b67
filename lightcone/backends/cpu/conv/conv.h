// Convolutions of f32 with contiguous pixels (NCHW).
//
// One kernel has three algorithms, because each run chooses among them by its sizes. The direct one is a matrix
// product, weights[rows, taps] times image[taps, pixels]; the second factor exists only as packed strips of pixels, and
// padding becomes zeros in them. The sliding one is the same product over a padded copy of the image. Winograd's F(4x4,
// 3x3) takes 4 multiplications instead of 16. The table of all algorithms is in algorithms.h.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/conv/plan/conv_plan.h"
#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/products/gemm.h"

namespace lc {
class HostKernel;
struct HostLaunch;
}  // namespace lc

namespace lc::backends::cpu {

class Epilogue;
static_assert(kSpatial == lowering::kSpatial && kConvFar == lowering::Convolution::kFar);

// Whether a kernel computes by F(4x4, 3x3) where the shape allows it. Tests use Always.
enum class UseWinograd : std::uint8_t { Never, IfCheaper, Always };
// Makes the kernel of an NCHW convolution in f32. `epilogue` may be null.
std::shared_ptr<HostKernel> nchw_kernel(const ConvPlan& c, UseWinograd winograd,
                                        std::shared_ptr<const Epilogue> epilogue, const Target& target,
                                        const Blocking& blocking = Blocking());

// Filters packed as the microkernels read them, once, when a parameter is loaded. The layout per group is panels of mr
// rows, [depth][mr]; only the last panel is padded. Both algorithms read it.
struct PackedFilters {
  std::int64_t offset = 0, rows = 0, row = 0, depth = 0, groups = 1;  // offset, extents and row stride in the parameter
  std::vector<std::array<std::int64_t, 2>> sums, outer;               // {extent, stride} of the axes, innermost last
  bool channels_last = false;                                         // panels of nhwc.h
  bool halves = false;                                                // panels of nhwc.h, of the parameter's type
  bool bf16 = false;                                                  // panels of bf16 pairs: nhwc_bf16.h
  bool registers = false;                                             // strips of bf16 pairs: register_filters.h
  bool narrow = false;  // for few channels: sums are down, across, channels
  // Element type of the parameter.
  WeightType stored = WeightType::F32;
  // Rows of a panel.
  int panel(const Target& target) const;
  // Words (bf16 pairs) of the channels of one tap.
  std::int64_t words() const { return (sums.back()[0] + 1) / 2; }
  // Blocks of 32 of these channels.
  std::int64_t blocks() const { return (sums.back()[0] + 31) / 32; }
  std::int64_t group_floats(std::int64_t mr) const { return (rows + mr - 1) / mr * mr * depth; }
  // Size of the packed filters. The padding is for vector accesses wider than a row.
  std::int64_t floats(std::int64_t mr) const { return groups * group_floats(mr) + 16; }
  auto operator<=>(const PackedFilters&) const = default;
};
// How the filters of `c` would be packed by its algorithm, if it has one, and in f32 otherwise; nullopt if an extent is
// symbolic.
std::optional<PackedFilters> filters_in_memory(const ConvPlan& c);
// How to pack the filters of `c`; nullopt if they are not a parameter worth packing or an extent is symbolic.
std::optional<PackedFilters> packed_filters(const Graph& g, const ConvPlan& c, const Target& target);
// Returns why packed_filters() is nullopt; nullopt if it is not.
std::optional<std::string> packing_refusal(const Graph& g, const ConvPlan& c, const Target& target);
// Makes the kernel that packs a parameter.
std::shared_ptr<HostKernel> pack_weights_kernel(const PackedFilters& f, const Target& target);
// The packed filters of a convolution whose algorithm is chosen, as a value: its type, extent and kernel.
struct PackedParameter {
  DType dtype;
  std::int64_t elements;
  std::shared_ptr<HostKernel> kernel;
};
PackedParameter packed_parameter(const ConvPlan& c, const PackedFilters& f, const Target& target);

// ---- running -----------------------------------------------------------------------------------

// A run of a convolution kernel, with all sizes as numbers.
struct ConvRun {
  struct Axis {
    std::int64_t extent, image, weight, out;
  };
  static constexpr int kOuter = 16;
  Axis outer[kOuter];
  int axes = 0;
  std::int64_t count = 1;         // number of products
  std::int64_t packed_group = 0;  // floats of a group's packed weights
  ConvProblem base;               // the first product
  const ConvPlan* shape = nullptr;
  UseWinograd winograd = UseWinograd::Never;
  bool room_to_slide = false;                                    // the scratch has room for slide()
  bool packed_filters = false;                                   // Winograd's transforms read packed filters faster
  std::int64_t sum_extent[kOuter] = {}, sum_image[kOuter] = {};  // extents and image strides of shape->sums
  const ConvTable* t = nullptr;
  Blocking blocking{};
  const HostLaunch* launch = nullptr;
  const Epilogue* epilogue = nullptr;
  const std::int64_t* epilogue_sizes = nullptr;

  // Number of products that share their weights.
  std::int64_t images() const;
  std::int64_t groups() const;
  // The product of one group and one image.
  ConvProblem problem(std::int64_t group, std::int64_t image) const;
  // Runs the epilogue on rows [row, row + rows) of a product, which are complete for pixels [begin, end).
  void finish(const ConvProblem& p, std::int64_t row, std::int64_t rows, std::int64_t begin, std::int64_t end) const;
};

// The largest run of the kernel of `c` that the bounds of symbols allow. It refers to `c`.
ConvRun largest_run(const ConvPlan& c, UseWinograd winograd, const Target& target, const Blocking& blocking);
// Returns whether all runs have the same sizes.
bool sizes_are_known(const ConvPlan& c);
// Merges rows of pixels that are contiguous in the image and need no padding into one row.
void join_pixels(ConvProblem& p);

// An algorithm of the NCHW kernel. It is chosen in each run, because sizes may be symbolic.
struct ConvInRun {
  // Returns why the algorithm should not compute the run; null: it may. It must not allocate.
  const char* (*refuses)(const ConvRun& run);
  // Estimates the cycles of a core that multiplies two vectors per cycle.
  double (*cost)(const ConvRun& run);
  void (*compute)(const ConvRun& run, float* scratch);
};
extern const ConvInRun kDirect, kSlide, kWinograd;

// Taps packed at a time by the direct algorithm, at most. The value affects the bits of results.
inline constexpr std::int64_t kDepth = 320;
// Maximum pixels of a task, each span rounded up to nr: packed, they take five eighths of L2.
std::int64_t direct_pixels(const Blocking& b);
// Pixels [begin, end) of a product.
struct Span {
  ConvProblem p;
  std::int64_t begin, end;
};
// The cost of a product without Winograd, for kDirect and kSlide. It is a tenth lower than the estimate: Winograd must
// gain as much, because its errors are larger.
double direct_cost(const ConvRun& run);
// Scratch per worker of the direct algorithm, in floats.
std::int64_t direct_floats(const ConvRun& run);
// Computes rows [row, row + rows) of the given spans, which share their weights.
void direct_part(const ConvRun& run, const Span* spans, std::size_t count, std::int64_t row, std::int64_t rows,
                 float* scratch);

// Taps multiplied at a time. It is the same for all algorithms and splits, because it affects the bits of results.
std::int64_t depth_step(std::int64_t depth);

// Scratch of kSlide, in floats; 0 if the convolution cannot slide.
std::int64_t slide_floats(const ConvRun& largest, int workers);

// Returns why Winograd's algorithm cannot compute the shape; nullopt: it can, if the sizes of a run allow it.
std::optional<std::string> winograd_refusal(const ConvPlan& c);
// Scratch of kWinograd, in floats.
std::int64_t winograd_floats(const ConvRun& largest, int workers);

}  // namespace lc::backends::cpu
