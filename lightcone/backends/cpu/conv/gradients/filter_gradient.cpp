#include "lightcone/backends/cpu/conv/gradients/filter_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kTilePixels = 128;           // pixels summed before adding to memory; affects bits
constexpr i64 kMostBlockPixels = 1 << 12;  // maximum pixels of a block
constexpr i64 kBlockFloats = 1 << 18;      // floats of both factors per block, about; all tasks read them
constexpr i64 kMostFilterTaps = 1 << 10;
constexpr i64 kMostOfOne = 64;  // maximum taps for images with one channel
constexpr i64 kTasksOfTiles = 48;

void move(FilterGradientShape::At& to, i64 steps, const FilterGradientShape::At& by) {
  to.rows += steps * by.rows, to.columns += steps * by.columns;
}

template <class T>
struct FilterGradientSizes {
  T image_offset = 0, cotangent_offset = 0, pixels = 0;  // pixels: extent of the first summed axis
  template <class F>
  void each(const F& f) {
    f(image_offset), f(cotangent_offset), f(pixels);
  }
};

class FilterGradientKernel final : public ConvKernel {
 public:
  FilterGradientKernel(const ConvPlan& c, const FilterGradientShape& s, const FilterGradientTable& t)
      : ConvKernel(FilterGradientSizes<Dim>{c.image_offset, c.weight_offset, c.sums[0].extent}, nullptr), s_(s), t_(t) {
    block_ = std::clamp(kBlockFloats / (s.rows + s.columns), kTilePixels, kMostBlockPixels) / kTilePixels * kTilePixels;
    for (std::size_t i = 1; i < s.pixels.size(); ++i) inner_ *= s.pixels[i].extent;
    for (const FilterGradientShape::Group& g : s.groups) groups_ *= g.extent;
    set_figures("conv_filter_gradient", Dim(2 * groups_ * taps() * s.rows * s.columns * inner_) * c.sums[0].extent);
    set_scratch(taps() * (block_ * static_cast<i64>(sizeof(PixelPair)) + static_cast<i64>(sizeof(i64))), 0);
  }
  void run(const HostLaunch& l) const override;

 private:
  struct Job {
    const FilterGradientKernel& k;
    const float *rows, *columns;  // the block's first pixel
    float* out;
    i64 first, count;  // pixels of the block
    i64 chunk, chunks, panels;
    i64* kept;  // per tap: number of pixels that it reads
    PixelPair* pixels;
    bool add;
  };
  i64 taps() const { return s_.down.extent * s_.across.extent; }
  FilterGradientShape::Pixels place(i64 pixel) const;
  template <class F>
  void each_pixel(const Job& j, i64 tap, const F& f) const;
  void list(const Job& j, i64 tap) const;
  void add(const Job& j, i64 task) const;
  FilterGradientShape::Group group(i64 index) const;
  bool finite(const Job& j) const;
  void poison(const Job& j) const;

  FilterGradientShape s_;
  const FilterGradientTable& t_;
  i64 block_ = 0, inner_ = 1, groups_ = 1;
};

// Offsets of a pixel in both factors, and its coordinates.
FilterGradientShape::Pixels FilterGradientKernel::place(i64 pixel) const {
  FilterGradientShape::Pixels to;
  for (std::size_t i = s_.pixels.size(); i-- > 0;) {
    const FilterGradientShape::Pixels& p = s_.pixels[i];
    const i64 k = i == 0 ? pixel : pixel % p.extent;
    if (i > 0) pixel /= p.extent;
    move(to.at, k, p.at);
    to.down += k * p.down, to.across += k * p.across;
  }
  return to;
}

FilterGradientShape::Group FilterGradientKernel::group(i64 index) const {
  FilterGradientShape::Group to;
  for (std::size_t i = s_.groups.size(); i-- > 0; index /= s_.groups[i].extent) {
    const i64 k = index % s_.groups[i].extent;
    move(to.at, k, s_.groups[i].at);
    to.out += k * s_.groups[i].out;
  }
  return to;
}

// Calls f(rows, columns, exists) for each pixel of the block, with offsets in floats from the block's first pixel.
template <class F>
void FilterGradientKernel::each_pixel(const Job& j, i64 tap, const F& f) const {
  const FilterGradientShape::Pixels first = place(j.first), &x = s_.pixels.back();
  const i64 down = tap / s_.across.extent * s_.down.step, across = tap % s_.across.extent * s_.across.step;
  for (i64 p = 0, run = 0; p < j.count; p += run) {
    const FilterGradientShape::Pixels begin = place(j.first + p);
    run = s_.pixels.size() == 1 ? j.count : std::min(j.count - p, x.extent - (j.first + p) % x.extent);
    FilterGradientShape::At at = begin.at;
    move(at, -1, first.at);
    for (i64 k = 0; k < run; ++k, move(at, 1, x.at)) {
      const i64 y = down + begin.down + k * x.down, z = across + begin.across + k * x.across;
      f(at.rows, at.columns, y >= s_.down.lo && y < s_.down.hi && z >= s_.across.lo && z < s_.across.hi);
    }
  }
}

// Lists the pixels of the block that a tap reads inside the image.
void FilterGradientKernel::list(const Job& j, i64 tap) const {
  PixelPair *const begin = j.pixels + tap * block_, *to = begin;
  each_pixel(j, tap, [&](i64 rows, i64 columns, bool exists) {
    *to = {static_cast<std::int32_t>(rows), static_cast<std::int32_t>(columns)};
    to += exists;
  });
  j.kept[tap] = to - begin;
}

// A task: a row of taps, some rows and a panel of columns of the result, over all pixels of the block.
void FilterGradientKernel::add(const Job& j, i64 task) const {
  const i64 down = task % s_.down.extent, chunk = task / s_.down.extent % j.chunks;
  const i64 rest = task / s_.down.extent / j.chunks, panel = rest % j.panels;
  const FilterGradientShape::Group g = group(rest / j.panels);
  const float* rows = j.rows + g.at.rows + down * s_.down.at.rows;
  const float* columns = j.columns + g.at.columns + down * s_.down.at.columns + panel * t_.nr;
  float* out = j.out + g.out + down * s_.down.out + panel * t_.nr;
  const i64 width = std::min<i64>(t_.nr, s_.columns - panel * t_.nr);
  const i64 begin = chunk * j.chunk * t_.mr, end = std::min(s_.rows, begin + j.chunk * t_.mr);
  for (i64 p = 0; p == 0 || p < j.count; p += kTilePixels)
    for (i64 x = 0; x < s_.across.extent; ++x) {
      const i64 tap = down * s_.across.extent + x, count = std::clamp<i64>(j.kept[tap] - p, 0, kTilePixels);
      if (p > 0 && count == 0) continue;
      for (i64 r = begin; r < end; r += t_.mr)
        t_.tile(rows + x * s_.across.at.rows + r, columns + x * s_.across.at.columns, j.pixels + tap * block_ + p,
                count, out + x * s_.across.out + r * s_.out_row, s_.out_row, std::min<i64>(t_.mr, end - r), width,
                j.add || p > 0);
    }
}

bool FilterGradientKernel::finite(const Job& j) const {
  const float* cotangent = s_.image_in_rows ? j.columns : j.rows;
  const i64 channels = s_.image_in_rows ? s_.columns : s_.rows;
  bool all = true;
  for (i64 k = 0; k < groups_; ++k) {
    const FilterGradientShape::Group g = group(k);
    each_pixel(j, 0, [&](i64 rows, i64 columns, bool) {
      const float* p = cotangent + (s_.image_in_rows ? columns + g.at.columns : rows + g.at.rows);
      float sum = 0;
      for (i64 c = 0; c < channels; ++c) sum += p[c] * 0;
      all = all && sum == 0;
    });
  }
  return all;
}

// Adds the NaN that zeros of the padding give with non-finite cotangents, which skipping them missed.
void FilterGradientKernel::poison(const Job& j) const {
  const float* cotangent = s_.image_in_rows ? j.columns : j.rows;
  const i64 channels = s_.image_in_rows ? s_.columns : s_.rows, others = s_.image_in_rows ? s_.rows : s_.columns;
  const i64 step = s_.image_in_rows ? 1 : s_.out_row, along = s_.image_in_rows ? s_.out_row : 1;
  for (i64 tap = 0; tap < taps(); ++tap)
    for (i64 k = 0; k < groups_; ++k) {
      const FilterGradientShape::Group g = group(k);
      float* out = j.out + g.out + tap / s_.across.extent * s_.down.out + tap % s_.across.extent * s_.across.out;
      each_pixel(j, tap, [&](i64 rows, i64 columns, bool exists) {
        const float* p = cotangent + (s_.image_in_rows ? columns + g.at.columns : rows + g.at.rows);
        for (i64 c = 0; !exists && c < channels; ++c)
          for (i64 i = 0; !std::isfinite(p[c]) && i < others; ++i)
            out[c * step + i * along] = std::numeric_limits<float>::quiet_NaN();
      });
    }
}

void FilterGradientKernel::run(const HostLaunch& l) const {
  FilterGradientSizes<i64> s;
  read_sizes(l.sizes.data(), s);
  const auto* image = static_cast<const float*>(l.in[0]) + s.image_offset;
  const auto* cotangent = static_cast<const float*>(l.in[1]) + s.cotangent_offset;
  const i64 all = s.pixels * inner_, tiles = ceil_div(s_.rows, t_.mr), panels = ceil_div(s_.columns, t_.nr);
  const i64 others = groups_ * panels * s_.down.extent;
  Job j{*this, nullptr, nullptr, static_cast<float*>(l.out), 0, 0, 0, 0, panels, nullptr, nullptr, false};
  j.chunk = std::clamp<i64>(tiles * others / kTasksOfTiles, 1, 8), j.chunks = ceil_div(tiles, j.chunk);
  j.pixels = reinterpret_cast<PixelPair*>(l.scratch);
  j.kept = reinterpret_cast<i64*>(j.pixels + taps() * block_);
  for (i64 first = 0; first == 0 || first < all; first += block_) {
    j.first = first, j.count = std::min(block_, all - first), j.add = first > 0;
    const FilterGradientShape::At at = place(first).at;
    j.rows = (s_.image_in_rows ? image : cotangent) + at.rows;
    j.columns = (s_.image_in_rows ? cotangent : image) + at.columns;
    const auto list = [](void* arg, int task, int) {
      const Job& of = *static_cast<Job*>(arg);
      of.k.list(of, task);
    };
    l.parallel.run(static_cast<int>(taps()), list, &j);
    const auto add = [](void* arg, int task, int) {
      const Job& of = *static_cast<Job*>(arg);
      of.k.add(of, task);
    };
    l.parallel.run(static_cast<int>(others * j.chunks), add, &j);
    if (!finite(j)) poison(j);
  }
}

// Returns whether the offsets of a block's pixels fit in 32 bits.
bool fits(const FilterGradientShape& s, i64 inner) {
  i64 reach = 0;
  for (std::size_t i = 0; i < s.pixels.size(); ++i) {
    const i64 steps = i == 0 ? kMostBlockPixels / inner + 2 : s.pixels[i].extent;
    reach += steps * std::max(std::abs(s.pixels[i].at.rows), std::abs(s.pixels[i].at.columns));
  }
  return reach < std::numeric_limits<std::int32_t>::max();
}

}  // namespace

std::optional<FilterGradientShape> filter_gradient_shape(const ConvPlan& c) {
  if (c.stored != WeightType::F32 || !(c.rows.weight == Dim(1)) || !(c.rows.image == Dim(0))) return std::nullopt;
  bool known = true;
  const auto number = [&](const Dim& d) {
    const auto v = d.constant();
    known = known && v;
    return v.value_or(1);
  };
  // The pixel axes of the result are two axes of taps and one of image channels. The image's channels are the columns
  // of the result if the cotangent's are its rows.
  FilterGradientShape s;
  s.image_in_rows = c.channels_last;
  const int taps = c.channels_last ? 1 : 0, other = c.channels_last ? 0 : 2;
  const auto at = [&](const Dim& image, const Dim& cotangent) {
    const i64 i = number(image), k = number(cotangent);
    return s.image_in_rows ? FilterGradientShape::At{i, k} : FilterGradientShape::At{k, i};
  };
  i64 out[kSpatial], stride = c.channels_last ? number(c.rows.extent) : 1;
  for (int k = kSpatial; k-- > 0;) out[k] = stride, stride *= number(c.pixels[k].extent);
  for (int k = 0; k < 2; ++k) {
    const auto& p = c.pixels[taps + k];
    FilterGradientShape::Taps& t = k == 0 ? s.down : s.across;
    t = {number(p.extent), out[taps + k], at(p.image, 0), p.step, number(p.lo), number(p.hi)};
  }
  const auto& free = c.pixels[other];
  if (free.step != 0 || !(free.lo == Dim(-ConvPlan::kFar)) || !(free.hi == Dim(ConvPlan::kFar))) return std::nullopt;
  i64 channels = 1, channel_out = 0;
  bool found = false;
  const auto axis = [&](const FilterGradientShape::Group& a) {
    const i64 image = s.image_in_rows ? a.at.rows : a.at.columns,
              cotangent = s.image_in_rows ? a.at.columns : a.at.rows;
    if (!found && image == 1 && cotangent == 0) channels = a.extent, channel_out = a.out, found = true;
    else if (a.extent != 1) s.groups.push_back(a);
  };
  axis({number(free.extent), out[other], at(free.image, 0)});
  if (!c.channels_last && !found) return std::nullopt;
  for (const auto& a : c.outer) axis({number(a.extent), number(a.out), at(a.image, a.weight)});
  const i64 rows_out = number(c.rows.out);
  s.rows = number(c.rows.extent), s.columns = channels, s.out_row = rows_out;
  if (s.image_in_rows) s.columns = s.rows, s.rows = channels, s.out_row = channel_out;
  i64 inner = 1;
  for (std::size_t i = 0; i < c.sums.size(); ++i) {
    const auto& sum = c.sums[i];
    if (sum.dilation[other] != 0) return std::nullopt;
    const i64 extent = i == 0 ? 0 : number(sum.extent);
    s.pixels.push_back({extent, at(sum.image, sum.weight), sum.dilation[taps], sum.dilation[taps + 1]});
    if (i > 0) inner *= extent;
  }
  const i64 all = s.down.extent * s.across.extent;
  if (!known || s.pixels.empty() || s.rows * s.columns * inner * all == 0 || all > kMostFilterTaps) return std::nullopt;
  if (!found && (!s.groups.empty() || s.pixels.size() < 3 || all > kMostOfOne)) return std::nullopt;
  if (s.image_in_rows && rows_out != 1) return std::nullopt;
  return fits(s, inner) ? std::optional(s) : std::nullopt;
}

std::string filter_gradient_refusal(const ConvPlan& c) {
  if (c.stored != WeightType::F32) return "a factor is not stored in f32";
  if (!(c.rows.weight == Dim(1)) || !(c.rows.image == Dim(0))) return "the second factor's channels are not contiguous";
  return "the sums are not over pixels with contiguous channels, or sizes are symbolic or too large";
}

std::shared_ptr<HostKernel> filter_gradient_kernel(const ConvPlan& c, const Target& target) {
  return std::make_shared<FilterGradientKernel>(c, *filter_gradient_shape(c),
                                                *kernel_tables(target.isa).filter_gradient);
}

}  // namespace lc::backends::cpu
