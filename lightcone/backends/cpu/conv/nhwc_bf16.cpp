#include "lightcone/backends/cpu/conv/nhwc_bf16.h"

#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
using Word = std::uint32_t;  // a pair of channels

i64 channel_words(const NhwcShape& s) { return (s.sums.back().extent + 1) / 2; }

// Returns whether the numbers of an image of bf16 are words where they are, so that nothing is copied.
bool words_in_place(const NhwcShape& s) {
  const auto even = [](const NhwcShape::Sum& a) { return a.read % 2 == 0; };
  return !s.copy && s.sums.back().extent % 2 == 0 && s.x.step % 2 == 0 && s.y.step % 2 == 0 && s.batch_image % 2 == 0 &&
         std::all_of(s.sums.begin(), s.sums.end() - 1, even);
}

// The sums over the words, which are those of the image if they are in place and of rounded data otherwise.
std::vector<NhwcShape::Sum> in_words(const NhwcShape& s, bool in_place) {
  std::vector<NhwcShape::Sum> sums = s.sums;
  i64 length = channel_words(s);
  sums.back().extent = length;
  for (std::size_t i = sums.size() - 1; i-- > 0;) {
    if (in_place) sums[i].read /= 2;
    else if (s.copy) sums[i].read = sums[i].read / s.channels * channel_words(s);
    else sums[i].read = length, length *= sums[i].extent;
  }
  return sums;
}

class NhwcBf16Kernel final : public ConvKernel {
 public:
  NhwcBf16Kernel(const ConvPlan& c, const NhwcShape& s, std::shared_ptr<const Epilogue> epilogue,
                 const NhwcBf16Table& t, const Blocking& blocking)
      : ConvKernel(BatchSizes<Dim>{c.image_offset, c.pixels[0].extent}, std::move(epilogue)),
        s_(s),
        number_(c.bf16_image ? 2 : 4),
        in_place_(c.bf16_image && words_in_place(s)),
        words_(channel_words(s)),
        table_(&t),
        tiles_(in_words(s, in_place_), s.rows, t.mr, t.nr, t.tile),
        quarter_(blocking.l2_budget_floats() / 2) {
    depth_ = s.depth / s.sums.back().extent * words_;
    if (s.copy) y_step_ = s.y.step / (s.x.length * s.channels), x_step_ = s.x.step / s.channels;
    most_ = quarter_ / (s.copy ? y_step_ * x_step_ * words_ : depth_);
    set_figures("conv_nhwc_bf16_" + std::string(t.name),
                Dim(2 * s.rows * s.depth * s.y.extent * s.x.extent) * c.pixels[0].extent);
    if (this->epilogue() && this->epilogue()->apart())
      apart_ = round_up(tiles_.apart_floats(NhwcTiles::most_pixels(most_)), 16);
    set_scratch(0, (copied_words() + apart_) * 4);
  }
  void run(const HostLaunch& l) const override;

 private:
  struct Job {
    const NhwcBf16Kernel& k;
    const HostLaunch& l;
    const std::byte* image;
    i64 pixels;
    NhwcTiles::Split split;
  };
  i64 row_words() const { return s_.x.length * words_; }
  // Rows of the padded image that `rows` rows of the result read.
  i64 copied_rows(i64 rows) const { return (rows - 1) * y_step_ + s_.y.length - (s_.y.extent - 1) * y_step_; }
  i64 copied_words() const;
  void copy_row(const std::byte* image, i64 y, Word* to) const;
  void copy_rows(const Job& j, i64 first, i64 count, Word* to, const float** at) const;
  void copy_windows(const Job& j, i64 first, i64 count, Word* to, const float** at) const;
  void find_windows(const Job& j, i64 first, i64 count, const float** at) const;
  std::span<const float> reads(const Job& j, i64 first, i64 count) const;
  void share(const Job& j, int task, int worker) const;

  NhwcShape s_;
  i64 number_;     // bytes of a number of the image
  bool in_place_;  // the image's numbers are read where they are
  i64 words_;      // words of a pixel's channels
  const NhwcBf16Table* table_;
  NhwcTiles tiles_;
  // A quarter of L2: approximate words of the image that a task rounds, and floats prefetched for the next task.
  i64 quarter_;
  i64 depth_ = 0, y_step_ = 1, x_step_ = 1;  // words of a window; rows and pixels between windows
  i64 most_ = 0;                             // pixels per task, about
  i64 apart_ = 0;                            // floats of sums apart from the result
};

// Words of the image that a worker copies.
i64 NhwcBf16Kernel::copied_words() const {
  if (in_place_) return 0;
  const i64 most = NhwcTiles::most_pixels(most_);
  if (!s_.copy) return ceil_div(most * depth_, 16) * 16;
  const i64 images = most / (s_.x.extent * s_.y.extent) + 2, rows = most / s_.x.extent + 2;
  return ceil_div((rows * y_step_ + images * copied_rows(1)) * row_words(), 16) * 16;
}

// Copies a row of the padded image, rounded.
void NhwcBf16Kernel::copy_row(const std::byte* image, i64 y, Word* to) const {
  const bool inside = y >= s_.y.lo && y < s_.y.hi;
  const i64 lo = inside ? s_.x.lo : s_.x.length, hi = inside ? s_.x.hi : s_.x.length;
  const std::byte* from = image + (y * s_.y.unit + lo * s_.x.unit) * number_;
  std::fill(to, to + lo * words_, 0);
  if (number_ == 2)
    for (i64 x = lo; x < hi; ++x, from += s_.x.unit * 2)
      std::memcpy(to + x * words_, from, static_cast<std::size_t>(words_) * 4);
  else
    table_->round(reinterpret_cast<const float*>(from), s_.x.unit, s_.channel_step, hi - lo, s_.channels,
                  to + lo * words_, words_);
  std::fill(to + hi * words_, to + s_.x.length * words_, 0);
}

// Rounds the rows that the windows of pixels [first, first + count) reach, image by image, and sets each window's
// address.
void NhwcBf16Kernel::copy_rows(const Job& j, i64 first, i64 count, Word* to, const float** at) const {
  const i64 pixels = s_.y.extent * s_.x.extent;
  for (i64 q = 0; q < count;) {
    const i64 pixel = (first + q) % pixels, n = std::min(count - q, pixels - pixel), image = (first + q) / pixels;
    const i64 top = pixel / s_.x.extent, rows = (pixel + n - 1) / s_.x.extent - top + 1;
    for (i64 y = 0; y < copied_rows(rows); ++y)
      copy_row(j.image + image * s_.batch_image * number_, top * y_step_ + y, to + y * row_words());
    for (i64 i = 0; i < n; ++i) {
      const i64 y = (pixel + i) / s_.x.extent - top, x = (pixel + i) % s_.x.extent;
      at[q++] = reinterpret_cast<const float*>(to + y * y_step_ * row_words() + x * x_step_ * words_);
    }
    to += copied_rows(rows) * row_words();
  }
}

// Rounds the window of each pixel.
void NhwcBf16Kernel::copy_windows(const Job& j, i64 first, i64 count, Word* to, const float** at) const {
  const std::size_t outer = s_.sums.size() - 1;
  for (i64 q = 0; q < count;) {  // row by row
    const i64 x = (first + q) % s_.x.extent, row = (first + q) / s_.x.extent, n = std::min(count - q, s_.x.extent - x);
    const float* from = reinterpret_cast<const float*>(j.image) + row / s_.y.extent * s_.batch_image +
                        row % s_.y.extent * s_.y.step + x * s_.x.step;
    for (i64 k = 0; k < depth_ / words_; ++k) {
      i64 offset = 0, rest = k;
      for (std::size_t i = outer; i-- > 0; rest /= s_.sums[i].extent)
        offset += rest % s_.sums[i].extent * s_.sums[i].read;
      table_->round(from + offset, s_.x.step, 1, n, s_.sums.back().extent, to + q * depth_ + k * words_, depth_);
    }
    for (const i64 end = q + n; q < end; ++q) at[q] = reinterpret_cast<const float*>(to + q * depth_);
  }
}

// The windows of an image whose numbers are read where they are.
void NhwcBf16Kernel::find_windows(const Job& j, i64 first, i64 count, const float** at) const {
  i64 x = first % s_.x.extent, y = first / s_.x.extent % s_.y.extent, image = first / s_.x.extent / s_.y.extent;
  for (i64 q = 0; q < count; ++q) {
    at[q] = reinterpret_cast<const float*>(j.image + (image * s_.batch_image + y * s_.y.step + x * s_.x.step) * 2);
    if (++x == s_.x.extent) x = 0, ++y;
    if (y == s_.y.extent) y = 0, ++image;
  }
}

// The range of the image that contains some pixels' windows, if it has no gaps.
std::span<const float> NhwcBf16Kernel::reads(const Job& j, i64 first, i64 count) const {
  const i64 row = first / s_.x.extent, y = row % s_.y.extent;
  const i64 before = row / s_.y.extent * s_.batch_image;
  const i64 numbers = std::min(count * s_.batch_image / (s_.x.extent * s_.y.extent), quarter_);
  if (s_.copy ? s_.channel_step != 1 : s_.x.step != s_.depth) return {};
  const i64 from = s_.copy ? std::max<i64>(y * y_step_, s_.y.lo) * s_.y.unit + s_.x.lo * s_.x.unit
                           : y * s_.y.step + first % s_.x.extent * s_.x.step;
  return {reinterpret_cast<const float*>(j.image + (before + from) * number_),
          static_cast<std::size_t>(numbers * number_ / 4)};
}

void NhwcBf16Kernel::share(const Job& j, int task, int worker) const {
  const i64 first = task / j.split.across * j.split.pixels, panel = task % j.split.across * j.split.panels;
  const i64 count = std::min(j.split.pixels, j.pixels - first);
  auto* words = reinterpret_cast<Word*>(j.l.scratch) + worker * (copied_words() + apart_);
  auto* sums = apart_ > 0 ? reinterpret_cast<float*>(words + copied_words()) : nullptr;
  const float* at[NhwcTiles::kPixels];
  if (in_place_) find_windows(j, first, count, at);
  else if (s_.copy) copy_rows(j, first, count, words, at);
  else copy_windows(j, first, count, words, at);
  const i64 next = (task + j.l.parallel.workers()) / j.split.across * j.split.pixels;  // probably this worker's next
  std::span<const float> soon;
  if (next > first && next < j.pixels) soon = reads(j, next, std::min(count, j.pixels - next));
  tiles_.run(j.l, at, epilogue(), epilogue_sizes(j.l), first, count, panel, panel + j.split.panels, soon, sums);
}

void NhwcBf16Kernel::run(const HostLaunch& l) const {
  BatchSizes<i64> s;
  read_sizes(l.sizes.data(), s);
  const std::byte* image = static_cast<const std::byte*>(l.in[0]) + s.image_offset * number_;
  Job j{*this, l, image, s.images * s_.y.extent * s_.x.extent, {}};
  if (j.pixels <= 0) return;
  j.split = tiles_.split(j.pixels, most_, l.parallel.workers());
  const auto task = [](void* arg, int number, int worker) {
    const Job& k = *static_cast<const Job*>(arg);
    k.k.share(k, number, worker);
  };
  l.parallel.run(static_cast<int>(j.split.tasks), task, &j);
}

// The sizes of `c`; nullopt without pairs of channels.
std::optional<NhwcShape> bf16_shape(const ConvPlan& c) {
  if (!c.channels_last || is_depthwise_nhwc(c)) return std::nullopt;
  auto s = nhwc_shape(c);
  if (!s || s->sums.empty() || s->sums.back().extent < 2) return std::nullopt;
  if (s->copy && s->channels != s->sums.back().extent) return std::nullopt;
  // A task's rows or window are never divided, so they must not be too long.
  constexpr i64 kLongest = 1 << 18;
  const i64 row = s->copy ? s->x.length * s->channels : 0;
  const i64 reach = s->copy ? (s->y.length - (s->y.extent - 1) * (s->y.step / row)) * row : s->depth;
  if (reach > kLongest) return std::nullopt;
  return s;
}

}  // namespace

const NhwcBf16Table& nhwc_bf16_table(const Target& target) {
  return bf16_dots_are_fast(target) ? kNhwcBf16Avx512Bf16 : kNhwcBf16Generic;
}

std::optional<std::string> nhwc_bf16_refusal(const ConvPlan& c) {
  if (is_depthwise_nhwc(c)) return "each channel has its own filters";
  if (!nhwc_shape(c)) return nhwc_refusal(c);
  if (!bf16_shape(c)) return "a pixel has no pairs of channels, or a window is too long";
  return std::nullopt;
}

bool nhwc_bf16_reads_bf16(const ConvPlan& c) {
  const auto s = bf16_shape(c);
  const auto offset = c.image_offset.constant();
  if (!s || !offset || *offset % 2 != 0) return false;
  return s->copy ? s->channel_step == 1 && s->channels % 2 == 0 : words_in_place(*s);
}

std::shared_ptr<HostKernel> nhwc_bf16_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Target& target, const Blocking& blocking) {
  return std::make_shared<NhwcBf16Kernel>(c, *bf16_shape(c), std::move(epilogue), nhwc_bf16_table(target), blocking);
}

}  // namespace lc::backends::cpu
