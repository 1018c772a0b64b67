// Convolutions in bf16: a product of the filters and of the image's windows by the tiles of microkernel.h, whose
// operands are rounded to bf16 and summed in f32, as Precision::Medium allows.
//
// What is summed goes by pairs of channels, the form in which tiles read B: [pair][tap][pixel][2]. A task rounds the
// rows of the image it needs into planes of such pairs, with their padding around them; a stride of two makes four of
// each row, of the even and the odd rows and columns. There every tap is a shift, and a panel of B is copied together
// from shifted rows. An image without padding, and one whose windows do not overlap, is rounded straight into panels.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/backends/cpu/products/microkernel.h"

namespace lc::backends::cpu {

struct NchwBf16 {
  const Microkernel* unit;
  WeightType stored;  // of the weights: f32 or bf16
  std::int64_t rows, out_row, pixels, groups;
  struct Axis {
    std::int64_t extent = 1, step = 1, unit = 0;  // of the output; coordinates of a pixel; floats of a coordinate
    std::int64_t lo = 0, hi = 0;                  // coordinates that are read, the others are zeros
    std::int64_t phases = 1, length = 1;
  };
  Axis y, x;
  bool planes = false;                     // else panels are read from the image
  std::int64_t row_words = 0;              // of a plane: a row of all its phases; each word is a pair
  std::vector<std::int64_t> channels;      // where each begins in the image; an even number of them
  std::vector<std::int64_t> shift;         // of each tap, in a plane
  std::vector<std::int64_t> weights;       // of each pair, tap and half: the offset in a row, or kNothing
  std::vector<std::int64_t> group_weight;  // where the groups' weights begin
  std::int64_t weight_row = 0;

  static constexpr std::int64_t kNothing = INT64_MIN;  // the second half of an odd number of channels
  std::int64_t depth() const { return static_cast<std::int64_t>(weights.size()); }
  std::int64_t group_bytes() const { return (rows + unit->mr - 1) / unit->mr * unit->a_bytes(depth()); }
};
// Nothing where sizes other than the batch's are symbolic, or the image is not read along two axes.
// The unit is one of pairs of bf16, as a processor has that is fast at them.
std::shared_ptr<const NchwBf16> make_nchw_bf16(const ConvPlan& c, WeightType stored, const Microkernel& unit);
// Has `c` multiplied in bf16 where the precision allows it, this CPU is fast at it and its weights are a parameter
// that nothing else reads. `uses`: of the graph's nodes; `winograd`: is that allowed where it is faster?
void choose_nchw_bf16(const Graph& g, const std::vector<int>& uses, bool winograd, const Target& target, ConvPlan& c);

std::shared_ptr<HostKernel> nchw_bf16_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Blocking& blocking = Blocking());
// The filters as strips of A, [group][strip][all of k], kTileDepth by kTileDepth.
std::shared_ptr<HostKernel> pack_nchw_bf16_kernel(std::shared_ptr<const NchwBf16> pairs);

// One instruction set's functions.
struct NchwBf16Table {
  // n pixels of each of `count` pairs of channels, from[2 * i] and from[2 * i + 1]. Pair i, column c goes to
  // to[c / 16 * group + i * row + c % 16], and columns begin with `column`.
  void (*round)(const float* image, const std::int64_t* from, std::int64_t count, std::int64_t step, std::int64_t n,
                std::uint32_t* to, std::int64_t row, std::int64_t column, std::int64_t group);
  // n <= 16 neighbours at each of `count` places: rows of 16
  void (*gather)(const std::uint32_t* from, const std::int64_t* at, std::int64_t count, std::int64_t n,
                 std::uint32_t* to);
  // rows of n floats
  void (*move)(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t n, float* to,
               std::int64_t to_row);
};
extern const NchwBf16Table kNchwBf16Generic, kNchwBf16Avx512Bf16;

}  // namespace lc::backends::cpu
