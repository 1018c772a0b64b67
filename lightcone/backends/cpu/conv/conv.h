// Convolutions of f32 with pixels last (NCHW).
//
// Two ways to compute them. The direct one is a matrix product, weights[rows, taps] times
// image[taps, pixels], whose second factor exists only as packed strips of pixels; padding is zeros
// written while packing. The other is Winograd's F(4x4, 3x3), 4 multiplications for 16.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/lowering/convolution.h"

namespace lc {
class HostKernel;
struct HostLaunch;
}  // namespace lc

namespace lc::backends::cpu {

class Epilogue;
struct NchwBf16;
using lowering::kSpatial;

// Winograd's F(4x4, 3x3): 4 x 4 results from products at 6 x 6 points.
inline constexpr std::int64_t kWinogradOut = 4, kWinogradSide = 6, kWinogradPoints = kWinogradSide * kWinogradSide;

// How this CPU computes a convolution.
struct ConvPlan : lowering::Convolution {
  bool packed = false;                             // weight_node holds panels, as pack_weights_kernel makes them
  bool filter_gradient = false;                    // sums over pixels: filter_gradient.h
  bool bf16 = false;                               // with channels last, multiplied in bf16: nhwc_bf16.h
  std::shared_ptr<const NchwBf16> nchw_bf16 = {};  // in bf16, and weight_node as pack_nchw_bf16_kernel makes it
};
// A convolution that one of the kernels here computes.
std::optional<lowering::Convolution> find_convolution(const Graph& g, const lowering::Factors& f, const Target& target);

enum class ConvAlgorithm : std::uint8_t { Direct, Cheapest, Winograd };  // the last: wherever the shape allows it
std::shared_ptr<HostKernel> convolution_kernel(const ConvPlan& c, ConvAlgorithm way,
                                               std::shared_ptr<const Epilogue> epilogue, const Target& target,
                                               const Blocking& blocking = Blocking());

// Weights as the micro-kernels read them: of each group, panels of mr rows, [depth][mr], and nothing is
// larger but the last panel. Both ways start from them. Packed once, when a parameter is loaded.
struct PackedFilters {
  std::int64_t offset = 0, rows = 0, row = 0, depth = 0, groups = 1;  // as they lie in the parameter
  std::vector<std::array<std::int64_t, 2>> sums, outer;               // extent, stride; innermost last
  bool channels_last = false;                                         // panels are of nhwc.h
  bool bf16 = false;                                                  // of pairs in bf16: nhwc_bf16.h
  WeightType stored = WeightType::F32;
  int panel(const Target& target) const;                           // its rows
  std::int64_t words() const { return (sums.back()[0] + 1) / 2; }  // of the channels in bf16
  std::int64_t group_floats(std::int64_t mr) const { return (rows + mr - 1) / mr * mr * depth; }
  std::int64_t floats(std::int64_t mr) const { return groups * group_floats(mr) + 16; }  // a vector is wider than a row
  auto operator<=>(const PackedFilters&) const = default;
};
// Of a parameter that is worth packing; nothing where an extent is symbolic.
std::optional<PackedFilters> packed_filters(const Graph& g, const ConvPlan& c, const Target& target);
std::shared_ptr<HostKernel> pack_weights_kernel(const PackedFilters& f, const Target& target);

// ---- running -----------------------------------------------------------------------------------

// One summed element.
struct Tap {
  std::int64_t image, weight;    // offsets
  std::int64_t shift[kSpatial];  // of the coordinates
};

// One product: a group of an image.
struct ConvProblem {
  const float *image = nullptr, *weight = nullptr;
  const float* packed = nullptr;  // the group's panels of weights, where they are packed
  float* out = nullptr;
  std::int64_t rows = 1, weight_row = 0, out_row = 0;
  std::int64_t pixels = 1;  // all of them
  std::int64_t extent[kSpatial], image_step[kSpatial], step[kSpatial], lo[kSpatial], hi[kSpatial];
  const Tap* taps = nullptr;
  std::int64_t depth = 0;
  bool neighbours = false;  // the taps of a row of weights lie side by side
};

// A tile of Winograd's: where it starts, which of its pixels exist.
struct WinogradTile {
  const float* image;
  float* out;
  std::int64_t top, bottom, left, right;  // rows and columns of the 6x6 that may be read
  std::int64_t down, across;              // of the 4x4 that are written, 0 behind the last tile
};

// One instruction set's functions.
struct ConvTable {
  int mr, nr;
  // weights [row, row + rows) x taps [k, k + depth) -> [depth][mr]
  void (*pack_weights)(const ConvProblem& p, std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth,
                       float* to);
  // pixels [first, first + columns) x taps [k, k + depth) -> strips [depth][nr]
  void (*pack_image)(const ConvProblem& p, std::int64_t first, std::int64_t columns, std::int64_t k, std::int64_t depth,
                     float* to);
  // C[rows <= mr, columns <= nr] (+)= packed weights [depth][mr] * packed image [depth][nr]
  void (*tile)(const float* a, const float* b, std::int64_t depth, float* c, std::int64_t c_row, std::int64_t rows,
               std::int64_t columns, bool add);
  // The same over an image whose row for tap k begins at b + at[k]: whole vectors, which may be wider than the
  // columns. `next`: weights that will be wanted soon.
  void (*slide)(const float* a, const float* next, const float* b, const std::int64_t* at, std::int64_t depth, float* c,
                std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
  // n elements, `step` apart, zeros for those outside of [begin, end); whole vectors are written
  void (*copy_row)(const float* from, std::int64_t step, std::int64_t begin, std::int64_t end, std::int64_t n,
                   float* to);
  // Winograd's transforms. Filters of rows [row, row + rows <= mr) and channels [first, first + depth)
  // -> [36][depth][mr], `stride` apart; `lanes` tiles side by side, element i at [i * stride]. The first
  // two say whether every number was finite and small enough to be mixed.
  int lanes;
  bool (*weights_in)(const ConvProblem& p, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t depth,
                     float* to, std::int64_t stride);
  bool (*image_in)(const WinogradTile* at, std::int64_t offset, std::int64_t down, std::int64_t across, float* to,
                   std::int64_t stride);
  void (*out)(const float* tiles, std::int64_t stride, const WinogradTile* at, std::int64_t offset, std::int64_t width);
};
extern const ConvTable kConvGeneric, kConvAvx2, kConvAvx512, kConvNeon;
const ConvTable& conv_table(Isa isa);

// A kernel's sizes in numbers, and where it works.
struct ConvRun {
  struct Axis {
    std::int64_t extent, image, weight, out;
  };
  static constexpr int kOuter = 16;
  Axis outer[kOuter];
  int axes = 0;
  std::int64_t count = 1;         // of products
  std::int64_t packed_group = 0;  // floats of a group's packed weights
  ConvProblem base;               // of the first
  const ConvPlan* shape = nullptr;
  std::int64_t sum_extent[kOuter] = {}, sum_image[kOuter] = {};  // of shape->sums
  const ConvTable* t = nullptr;
  Blocking blocking{};
  const HostLaunch* launch = nullptr;
  const Epilogue* epilogue = nullptr;
  const std::int64_t* epilogue_sizes = nullptr;

  std::int64_t images() const;  // products that share their weights
  std::int64_t groups() const;
  ConvProblem problem(std::int64_t group, std::int64_t image) const;
  // Rows [row, row + rows) of a product are complete for pixels [begin, end).
  void finish(const ConvProblem& p, std::int64_t row, std::int64_t rows, std::int64_t begin, std::int64_t end) const;
};

// The direct way: rows of products that share their weights, and some pixels of each.
inline constexpr std::int64_t kDepth = 320;  // taps packed at a time: it decides bits
// Pixels of a task, at most, every span rounded up to nr: packed they take five eighths of the second-level cache.
std::int64_t direct_pixels(const Blocking& b);
struct Span {
  ConvProblem p;
  std::int64_t begin, end;
};
std::int64_t direct_floats(const ConvRun& run);  // scratch of one worker
void direct_part(const ConvRun& run, const Span* spans, std::size_t count, std::int64_t row, std::int64_t rows,
                 float* scratch);

// Taps multiplied at a time, the same for every way and split: it decides bits.
std::int64_t depth_step(std::int64_t depth);

// The direct way without packed strips: one copy of the image, padded and with the phases of a stride apart,
// in which every tap is a shift. For images whose windows overlap, and for small ones.
bool slide_pays(const ConvRun& run);
std::int64_t slide_floats(const ConvRun& largest, int workers);
void slide(const ConvRun& run, float* scratch);

// Winograd: is the shape one it can do; is it worth it for these sizes; do it.
bool winograd_fits(const ConvPlan& c);
bool winograd_pays(const ConvRun& run);
std::int64_t winograd_floats(const ConvRun& run, int workers);
void winograd(const ConvRun& run, float* scratch);

}  // namespace lc::backends::cpu
