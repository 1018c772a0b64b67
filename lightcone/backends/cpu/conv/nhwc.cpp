#include "lightcone/backends/cpu/conv/nhwc.h"

#include <algorithm>

#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kCopyTask = 1 << 13;
constexpr i64 kMostImages = i64{1} << 32;  // beyond this, scratch and algorithm do not change

std::optional<i64> number(const Dim& d) { return d.constant(); }

// Reads the sizes of a pixel axis that is read from a padded copy. Returns false if they are not known constants.
bool padded_axis(const ConvPlan& c, int j, NhwcShape::Axis& a) {
  const ConvPlan::Pixel& p = c.pixels[j];
  const auto image = number(p.image);
  if (p.step <= 0 || !image || *image % p.step != 0) return false;
  a.unit = *image / p.step;
  i64 reach = 0;
  for (const auto& s : c.sums) {
    if (s.dilation[j] == 0) continue;
    const auto stride = number(s.image), extent = number(s.extent);
    if (s.dilation[j] < 0 || reach > 0 || !stride || !extent || *stride != a.unit * s.dilation[j]) return false;
    reach = s.dilation[j] * (*extent - 1);
  }
  const auto lo = number(p.lo), hi = number(p.hi);
  if (!lo || !hi) return false;
  a.length = p.step * (a.extent - 1) + reach + 1;
  a.lo = std::clamp<i64>(*lo, 0, a.length), a.hi = std::clamp<i64>(*hi, a.lo, a.length);
  return true;
}

bool is_padded_or_moved(const ConvPlan::Pixel& p) {
  return p.step != 0 || !(p.lo == Dim(-ConvPlan::kFar)) || !(p.hi == Dim(ConvPlan::kFar));
}

// Changes the sizes to those of a copy [image][y][x][channel]. Returns false if that is not possible.
bool copied(const ConvPlan& c, NhwcShape& s) {
  if (!padded_axis(c, 1, s.y) || !padded_axis(c, 2, s.x)) return false;
  for (std::size_t i = 0; i < c.sums.size(); ++i) {
    const auto& sum = c.sums[i];
    if (sum.dilation[1] != 0 || sum.dilation[2] != 0 || s.sums[i].extent == 1) continue;
    if (s.channels != 1) return false;
    s.channels = s.sums[i].extent, s.channel_step = s.sums[i].read;
  }
  const i64 row = s.x.length * s.channels;
  for (std::size_t i = 0; i < c.sums.size(); ++i) {
    const auto& d = c.sums[i].dilation;
    if (d[1] != 0 && d[2] != 0) return false;
    s.sums[i].read = d[1] != 0 ? d[1] * row : d[2] != 0 ? d[2] * s.channels : 1;
  }
  s.y.step = c.pixels[1].step * row, s.x.step = c.pixels[2].step * s.channels;
  s.batch_step = s.y.length * row;
  s.copy = true;
  return true;
}

class NhwcKernel final : public ConvKernel {
 public:
  NhwcKernel(const ConvPlan& c, const NhwcShape& s, bool winograd, std::shared_ptr<const Epilogue> epilogue,
             const Target& target, const Blocking& blocking)
      : ConvKernel(BatchSizes<Dim>{c.image_offset, c.pixels[0].extent}, std::move(epilogue)),
        s_(s),
        tiles_(s.sums, s.rows, *kernel_tables(target.isa).nhwc, c.stored),
        part_(blocking.l2_budget_floats()),
        copied_(blocking.llc_bytes(4) / 4) {
    const i64 largest = largest_batch(c);
    if (winograd) winograd_.emplace(s, largest, *kernel_tables(target.isa).nhwc, c.stored, blocking);
    set_figures(winograd ? "conv_winograd_nhwc" : "conv_nhwc",
                Dim(2 * s.rows * s.depth * s.y.extent * s.x.extent) * c.pixels[0].extent);
    set_scratch(std::max(s.copy ? group(largest) * s.batch_step : 0, winograd_ ? winograd_->floats() : 0) * 4, 0);
  }
  void run(const HostLaunch& l) const override;

 private:
  struct Job {
    const NhwcKernel& k;
    const HostLaunch& l;
    const float *image, *read;  // the first image of the group
    float *copy, *out;
    i64 pixels;
    NhwcTiles::Split split;
    i64 copy_rows;
  };
  i64 group(i64 images) const {
    return s_.copy ? std::clamp<i64>(copied_ / s_.batch_step, 1, std::max<i64>(images, 1)) : images;
  }
  void copy_row(const Job& j, i64 row) const;
  void share(const Job& j, int task) const;

  NhwcShape s_;
  NhwcTiles tiles_;
  // Approximate floats of the image that a task reads, and of images that are copied at a time.
  i64 part_, copied_;
  std::optional<NhwcWinograd> winograd_;
};

void NhwcKernel::copy_row(const Job& j, i64 row) const {
  const i64 image = row / s_.y.length, y = row % s_.y.length, c = s_.channels;
  float* to = j.copy + image * s_.batch_step + y * s_.x.length * c;
  const bool inside = y >= s_.y.lo && y < s_.y.hi;
  const i64 lo = inside ? s_.x.lo : s_.x.length, hi = inside ? s_.x.hi : s_.x.length;
  const float* from = j.image + image * s_.batch_image + y * s_.y.unit;
  std::fill(to, to + lo * c, 0.0f);
  if (s_.channel_step == 1) {
    for (i64 x = lo; x < hi; ++x) std::copy_n(from + x * s_.x.unit, c, to + x * c);
  } else {
    for (i64 x = lo; x < hi; ++x)
      for (i64 i = 0; i < c; ++i) to[x * c + i] = from[x * s_.x.unit + i * s_.channel_step];
  }
  std::fill(to + hi * c, to + s_.x.length * c, 0.0f);
}

void NhwcKernel::share(const Job& j, int task) const {
  const i64 first = task / j.split.across * j.split.pixels, panel = task % j.split.across * j.split.panels;
  const i64 count = std::min(j.split.pixels, j.pixels - first);
  const float* at[NhwcTiles::kPixels];
  i64 x = first % s_.x.extent, y = first / s_.x.extent % s_.y.extent, image = first / s_.x.extent / s_.y.extent;
  for (i64 q = 0; q < count; ++q) {
    at[q] = j.read + image * s_.batch_step + y * s_.y.step + x * s_.x.step;
    if (++x == s_.x.extent) x = 0, ++y;
    if (y == s_.y.extent) y = 0, ++image;
  }
  const i64 before = (j.out - static_cast<float*>(j.l.out)) / s_.rows;
  tiles_.run(j.l, at, epilogue(), epilogue_sizes(j.l), before + first, count, panel, panel + j.split.panels);
}

void NhwcKernel::run(const HostLaunch& l) const {
  BatchSizes<i64> s;
  read_sizes(l.sizes.data(), s);
  const i64 images = s.images, pixels = s_.y.extent * s_.x.extent;
  const int workers = l.parallel.workers();
  const float* whole = static_cast<const float*>(l.in[0]) + s.image_offset;
  if (winograd_ && winograd_->run(l, whole, images, epilogue(), epilogue_sizes(l), reinterpret_cast<float*>(l.scratch)))
    return;
  for (i64 first = 0, n = 0; first < images; first += n) {
    n = std::min(group(images), images - first);
    const float* image = whole + first * s_.batch_image;
    Job j{*this, l, image, image, nullptr, static_cast<float*>(l.out) + first * pixels * s_.rows, n * pixels, {}, 0};
    if (s_.copy) {
      j.read = j.copy = reinterpret_cast<float*>(l.scratch);
      j.copy_rows = ceil_div(kCopyTask, s_.x.length * s_.channels);
      const auto task = [](void* arg, int number, int) {
        const Job& k = *static_cast<const Job*>(arg);
        const i64 all = k.pixels / (k.k.s_.y.extent * k.k.s_.x.extent) * k.k.s_.y.length;
        for (i64 r = number * k.copy_rows; r < std::min(all, (number + 1) * k.copy_rows); ++r) k.k.copy_row(k, r);
      };
      l.parallel.run(static_cast<int>(ceil_div(n * s_.y.length, j.copy_rows)), task, &j);
    }
    j.split = tiles_.split(j.pixels, part_ / (s_.copy ? 2 * s_.channels : s_.depth), workers);
    const auto task = [](void* arg, int number, int) {
      const Job& k = *static_cast<const Job*>(arg);
      k.k.share(k, number);
    };
    l.parallel.run(static_cast<int>(j.split.tasks), task, &j);
  }
}

}  // namespace

std::optional<NhwcShape> nhwc_shape(const ConvPlan& c) {
  NhwcShape s = {};
  const auto batch = number(c.pixels[0].image), y = number(c.pixels[1].extent), x = number(c.pixels[2].extent);
  const auto y_step = number(c.pixels[1].image), x_step = number(c.pixels[2].image), rows = number(c.rows.extent);
  if (!c.outer.empty() || is_padded_or_moved(c.pixels[0]) || !batch || !y || !x || !y_step || !x_step || !rows)
    return std::nullopt;
  s.batch_image = s.batch_step = *batch, s.rows = *rows;
  s.y.extent = *y, s.x.extent = *x, s.y.step = *y_step, s.x.step = *x_step;
  for (const auto& sum : c.sums) {
    const auto extent = number(sum.extent), read = number(sum.image), weight = number(sum.weight);
    if (!extent || !read || !weight || sum.dilation[0] != 0) return std::nullopt;
    s.sums.push_back({*extent, *read, *weight}), s.depth *= *extent;
  }
  if (s.depth == 0 || s.rows == 0 || s.y.extent == 0 || s.x.extent == 0) return std::nullopt;
  if ((is_padded_or_moved(c.pixels[1]) || is_padded_or_moved(c.pixels[2])) && !copied(c, s)) return std::nullopt;
  std::stable_sort(s.sums.begin(), s.sums.end(), [](const auto& a, const auto& b) { return a.read > b.read; });
  std::erase_if(s.sums, [](const auto& a) { return a.extent == 1; });
  if (!s.sums.empty() && s.sums.back().read != 1) return std::nullopt;
  return s;
}

std::string nhwc_refusal(const ConvPlan& c) {
  if (!c.outer.empty()) return "there are groups, or several batch axes";
  for (const ConvPlan::Pixel& p : {c.pixels[1], c.pixels[2]})
    if (!p.extent.is_constant() || !p.image.is_constant()) return "a size other than the batch is symbolic";
  return "a window's channels are not contiguous, or a size other than the batch is symbolic";
}

i64 largest_batch(const ConvPlan& c) { return std::min(c.pixels[0].extent.bounds().hi, kMostImages); }

std::shared_ptr<HostKernel> nhwc_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                        const Target& target, const Blocking& blocking) {
  return std::make_shared<NhwcKernel>(c, *nhwc_shape(c), false, std::move(epilogue), target, blocking);
}

std::shared_ptr<HostKernel> nhwc_winograd_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                                 const Target& target, const Blocking& blocking) {
  return std::make_shared<NhwcKernel>(c, *nhwc_shape(c), true, std::move(epilogue), target, blocking);
}

}  // namespace lc::backends::cpu
