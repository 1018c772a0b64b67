// Winograd's F(4x4, 3x3), channels-last. A transformed tile is 36 rows of channels, so each of its 36 points is a
// matrix product, tiles x channels times channels x output channels, that reads rows in place.
//
// Filters are transformed in every run, because memory bandwidth is the bottleneck and they have a quarter of the bytes
// of transformed filters.
#include <algorithm>

#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/loops/epilogue.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kFewestTiles = 128, kMostTiles = 512;  // tiles per block
constexpr i64 kTilesTask = 4, kFilterChannels = 16, kTaps = 9;
// Channels added before a product is stored. The value affects the bits of results.
constexpr i64 kChannelsStep = 128;

// Fetches the numbers of the next tile in a row, which are too far apart for hardware prefetchers, from memory.
template <int Written>
void fetch(const float* from, i64 count) {
  for (i64 i = 0; i < count; i += 16) __builtin_prefetch(from + i, Written, 2);
}

double as_double(i64 v) { return static_cast<double>(v); }

}  // namespace

std::optional<std::string> nhwc_winograd_refusal(const NhwcShape& s) {
  if (!s.copy) return "the image is not padded";
  if (s.sums.size() != 3 || s.depth != 9 * s.channels || s.sums[0].extent != 3 || s.sums[1].extent != 3)
    return "the sums are not over channels and 3x3 taps";
  const i64 row = s.x.length * s.channels;
  if (s.y.step != row) return str_cat("the stride is ", s.y.step / row);
  if (s.x.step != s.channels) return str_cat("the stride is ", s.x.step / s.channels);
  if (s.sums[0].read != row || s.sums[1].read != s.channels || s.sums[2].read != 1)
    return "the dilation is not 1, or the taps are in another order";
  if (s.channel_step != 1) return "the image's channels are not contiguous";
  // A window in the padding must give exactly zero, which the transforms do not guarantee.
  if (s.y.lo > 1 || s.x.lo > 1 || s.y.hi <= s.y.extent || s.x.hi <= s.x.extent)
    return "a window may lie entirely in the padding";
  return std::nullopt;
}

double nhwc_cost(const NhwcShape& s, i64 images) {
  const double filters = as_double(s.depth) / 9 * as_double(s.rows);  // filters of nine taps
  return 0.9 * (filters * (9 * as_double(s.y.extent * s.x.extent * images) / 32 + 6));
}

// A transformed filter has four times the size, and is written and read again in every run: 80 cycles, measured in
// ResNet-50.
double nhwc_winograd_cost(const NhwcShape& s, i64 images) {
  const double filters = as_double(s.channels) * as_double(s.rows);
  const double tiles = as_double(images * ceil_div(s.y.extent, kWinogradOut) * ceil_div(s.x.extent, kWinogradOut));
  return filters * (kWinogradPoints * tiles / 32 + 80) + tiles * (9 * as_double(s.channels) + 7 * as_double(s.rows));
}

struct NhwcWinograd::Job {
  const NhwcWinograd& w;
  const HostLaunch& l;
  const float* image;
  i64 images;
  const Epilogue* epilogue;
  const i64* sizes;
  float *filters, *before, *behind, *zeros;  // transformed filters; tiles before and after the products; zeros
  unsigned char* bad;                        // per task: a number cannot be transformed
  i64 first = 0, count = 0;                  // tiles of the block
};

// A block's tiles, before and after the products, stay in the last-level cache.
NhwcWinograd::NhwcWinograd(const NhwcShape& s, i64 images, const NhwcTable& t, WeightType stored,
                           const Blocking& blocking)
    : s_(s),
      t_(&t),
      widen_(widening(t, stored)),
      down_(ceil_div(s.y.extent, kWinogradOut)),
      across_(ceil_div(s.x.extent, kWinogradOut)),
      panels_(ceil_div(s.rows, t.nr)),
      far_(4 * images * s.y.extent * s.x.extent * (s.channels + s.rows) > blocking.llc_bytes(16)) {
  block_ = std::min(
      std::clamp(blocking.llc_bytes(8) / 4 / (kWinogradPoints * (s.channels + s.rows)), kFewestTiles, kMostTiles),
      std::max<i64>(1, tiles(images)));
}

i64 NhwcWinograd::floats() const {
  const i64 tasks = std::max(panels_ * ceil_div(s_.channels, kFilterChannels), ceil_div(block_, kTilesTask));
  return kWinogradPoints * (panels_ * s_.channels * t_->nr + block_ * (s_.channels + s_.rows)) + s_.channels +
         round_up(tasks, 16);
}

// Transforms tiles of the image to [point][tile][channel].
void NhwcWinograd::transform(const Job& j, int task) const {
  const i64 begin = task * kTilesTask, end = std::min(j.count, begin + kTilesTask);
  bool good = true;
  for (i64 i = begin; i < end; ++i) {
    const i64 tile = j.first + i, x0 = tile % across_ * kWinogradOut, y0 = tile / across_ % down_ * kWinogradOut;
    const float* image = j.image + tile / across_ / down_ * s_.batch_image;
    const float* at[kWinogradPoints];
    for (i64 q = 0; q < kWinogradPoints; ++q) {
      const i64 y = y0 + q / kWinogradSide, x = x0 + q % kWinogradSide;
      const bool inside = y >= s_.y.lo && y < s_.y.hi && x >= s_.x.lo && x < s_.x.hi;
      at[q] = inside ? image + y * s_.y.unit + x * s_.x.unit : j.zeros;
    }
    for (i64 y = y0; far_ && y < y0 + kWinogradSide && x0 + kWinogradSide < s_.x.hi; ++y)
      if (y >= s_.y.lo && y < s_.y.hi)
        fetch<0>(image + y * s_.y.unit + (x0 + kWinogradSide) * s_.x.unit, kWinogradOut * s_.x.unit);
    good &= t_->image_in(at, s_.channels, j.before + i * s_.channels, j.count * s_.channels);
  }
  j.bad[task] = !good;
}

// Computes the products of one point and one panel of filters.
void NhwcWinograd::multiply(const Job& j, int task) const {
  const i64 q = task / panels_, p = task % panels_, c = s_.channels, nr = t_->nr;
  const i64 groups = ceil_div(j.count, t_->mr), step = ceil_div(c, ceil_div(c, kChannelsStep));
  const float* tiles = j.before + q * j.count * c;
  const float* filters = j.filters + task * c * nr;
  float* to = j.behind + q * j.count * s_.rows + p * nr;
  for (i64 k = 0; k < c; k += step) {
    const TapRun run{k, std::min(step, c - k)};
    const float* w = filters + k * nr;
    for (i64 g = 0; g < groups; ++g) {
      const i64 first = j.count * g / groups, rows = j.count * (g + 1) / groups - first;
      const float* at[16];
      for (i64 r = 0; r < rows; ++r) at[r] = tiles + (first + r) * c;
      const float* next = g * 16 < nr ? w + run.length * (nr + g * 16) : w;
      t_->tile(at, &run, 1, w, next, to + first * s_.rows, s_.rows, rows, std::min<i64>(nr, s_.rows - p * nr), k > 0);
    }
  }
}

void NhwcWinograd::write(const Job& j, int task) const {
  auto* out = static_cast<float*>(j.l.out);
  const i64 begin = task * kTilesTask, end = std::min(j.count, begin + kTilesTask);
  for (i64 i = begin; i < end; ++i) {
    const i64 tile = j.first + i, x0 = tile % across_ * kWinogradOut, y0 = tile / across_ % down_ * kWinogradOut;
    const i64 image = tile / across_ / down_;
    float* at[kWinogradOut * kWinogradOut];
    for (i64 q = 0; q < kWinogradOut * kWinogradOut; ++q) {
      const i64 y = y0 + q / kWinogradOut, x = x0 + q % kWinogradOut;
      const bool inside = y < s_.y.extent && x < s_.x.extent;
      at[q] = inside ? out + ((image * s_.y.extent + y) * s_.x.extent + x) * s_.rows : nullptr;
    }
    for (i64 y = 0; far_ && y < kWinogradOut; ++y)
      if (const float* first = at[y * kWinogradOut]; first && x0 + kWinogradOut < s_.x.extent)
        fetch<1>(first + kWinogradOut * s_.rows, kWinogradOut * s_.rows);
    t_->pixels_out(j.behind + i * s_.rows, j.count * s_.rows, s_.rows, at);
    // The pixels of a tile's row are contiguous.
    for (i64 y = 0; j.epilogue && y < std::min(kWinogradOut, s_.y.extent - y0); ++y)
      j.epilogue->run(j.l.in.data() + 2, out, j.sizes, (at[y * kWinogradOut] - out) / s_.rows,
                      std::min(kWinogradOut, s_.x.extent - x0), 0, s_.rows);
  }
}

// Transforms some channels of a panel of filters. Returns false if a number cannot be transformed.
bool NhwcWinograd::filters(const Job& j, int task) const {
  const i64 c = s_.channels, nr = t_->nr, some = ceil_div(c, kFilterChannels);
  const i64 panel = task / some, first = task % some * kFilterChannels, n = std::min(kFilterChannels, c - first);
  const i64 at = (panel * kTaps * c + first) * nr, stride = panels_ * c * nr;
  float* to = j.filters + (panel * c + first) * nr;
  if (!widen_) return t_->filters_in(static_cast<const float*>(j.l.in[1]) + at, c * nr, n, to, stride);
  alignas(64) float widened[kTaps * kFilterChannels * NhwcTable::kMostNr];
  const auto* from = static_cast<const std::uint16_t*>(j.l.in[1]) + at;
  for (i64 tap = 0; tap < kTaps; ++tap) widen_(from + tap * c * nr, n * nr, widened + tap * n * nr);
  return t_->filters_in(widened, n * nr, n, to, stride);
}

// Transforms all filters to [point][panel][channel][nr].
bool NhwcWinograd::all_filters(const Job& j) const {
  const auto task = [](void* arg, int number, int) {
    const Job& k = *static_cast<const Job*>(arg);
    k.bad[number] = !k.w.filters(k, number);
  };
  const i64 tasks = panels_ * ceil_div(s_.channels, kFilterChannels);
  j.l.parallel.run(static_cast<int>(tasks), task, const_cast<Job*>(&j));
  return std::none_of(j.bad, j.bad + tasks, [](unsigned char b) { return b != 0; });
}

bool NhwcWinograd::block(Job& j) const {
  const auto run = [&](i64 tasks, auto* task) { j.l.parallel.run(static_cast<int>(tasks), task, &j); };
  const i64 tasks = ceil_div(j.count, kTilesTask);
  run(
      tasks, +[](void* arg, int task, int) { static_cast<Job*>(arg)->w.transform(*static_cast<Job*>(arg), task); });
  if (std::any_of(j.bad, j.bad + tasks, [](unsigned char b) { return b != 0; })) return false;
  run(
      kWinogradPoints * panels_,
      +[](void* arg, int task, int) { static_cast<Job*>(arg)->w.multiply(*static_cast<Job*>(arg), task); });
  run(
      tasks, +[](void* arg, int task, int) { static_cast<Job*>(arg)->w.write(*static_cast<Job*>(arg), task); });
  return true;
}

bool NhwcWinograd::run(const HostLaunch& l, const float* image, i64 images, const Epilogue* epilogue, const i64* sizes,
                       float* scratch) const {
  Job j{*this, l, image, images, epilogue, sizes, scratch, nullptr, nullptr, nullptr, nullptr};
  j.before = j.filters + kWinogradPoints * panels_ * s_.channels * t_->nr;
  j.behind = j.before + kWinogradPoints * block_ * s_.channels;
  j.zeros = j.behind + kWinogradPoints * block_ * s_.rows;
  j.bad = reinterpret_cast<unsigned char*>(j.zeros + s_.channels);
  std::fill_n(j.zeros, s_.channels, 0.0f);
  if (!all_filters(j)) return false;
  const i64 all = tiles(images), blocks = ceil_div(all, block_);
  for (i64 b = 0; b < blocks; ++b) {
    j.first = all * b / blocks, j.count = all * (b + 1) / blocks - j.first;
    if (!block(j)) return false;
  }
  return true;
}

}  // namespace lc::backends::cpu
