#include "lightcone/backends/cpu/conv/gradients/on_registers.h"

#include <algorithm>
#include <numeric>

#include "lightcone/backends/cpu/conv/gradients/filter_gradient.h"
#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;

// A pixel axis: coordinate = stride * pixel + dilation * tap is read if it is in [lo, hi), and is zero otherwise.
struct GradientAxis {
  i64 pixels, taps, stride, dilation;
  i64 lo, hi, length;        // coordinates are from 0 to length
  i64 unit, cotangent, out;  // floats between coordinates, pixels of the cotangent, taps of the result
};
struct GradientShape {
  i64 images, image, cotangent;  // floats between images of both factors
  i64 channels, filters;         // the image's, the cotangent's
  i64 out_row;                   // floats between the channels of the result that are not contiguous
  bool filters_last;             // the cotangent's channels are contiguous in the result, otherwise the image's
  GradientAxis y, x;
};

// `pixel` and `tap`: floats in the image between pixels and between taps; `cotangent`: between pixels there.
std::optional<GradientAxis> gradient_axis(const FilterGradientShape::Taps& t, i64 pixels, i64 stride, i64 pixel,
                                          i64 tap, i64 cotangent) {
  GradientAxis a{pixels, t.extent, stride, t.step, t.lo, t.hi, 0, 0, cotangent, t.out};
  if (t.extent == 1) tap = a.dilation = 0;
  if (a.stride == 0 && a.dilation == 0) {  // without padding coordinates have no name
    a.unit = std::gcd(pixel, tap);
    if (a.unit <= 0) return std::nullopt;
    a.stride = pixel / a.unit, a.dilation = tap / a.unit;
  } else {
    if (a.stride <= 0 || pixel % a.stride != 0) return std::nullopt;
    a.unit = pixel / a.stride;
    if (tap != a.unit * a.dilation) return std::nullopt;
  }
  if (a.unit <= 0 || a.stride <= 0 || a.dilation < 0) return std::nullopt;
  a.length = a.stride * (a.pixels - 1) + a.dilation * (a.taps - 1) + 1;
  a.lo = std::clamp<i64>(t.lo, 0, a.length), a.hi = std::clamp<i64>(t.hi, a.lo, a.length);
  return a;
}

std::optional<GradientShape> gradient_shape(const ConvPlan& c) {
  constexpr i64 kFewest = 16, kLargest = 1 << 20;  // channels of the cotangent; extents
  const auto s = filter_gradient_shape(c);
  const auto images = c.sums.empty() ? std::nullopt : c.sums[0].extent.constant();
  if (!s || !images || !s->groups.empty() || s->pixels.size() != 3) return std::nullopt;
  const auto image = [&](const FilterGradientShape::At& at) { return s->image_in_rows ? at.rows : at.columns; };
  const auto cotangent = [&](const FilterGradientShape::At& at) { return s->image_in_rows ? at.columns : at.rows; };
  const FilterGradientShape::Pixels &batch = s->pixels[0], &y = s->pixels[1], &x = s->pixels[2];
  if (batch.down != 0 || batch.across != 0 || y.across != 0 || x.down != 0) return std::nullopt;
  const auto down = gradient_axis(s->down, y.extent, y.down, image(y.at), image(s->down.at), cotangent(y.at));
  const auto across = gradient_axis(s->across, x.extent, x.across, image(x.at), image(s->across.at), cotangent(x.at));
  if (!down || !across || down->length > kLargest || across->length > kLargest) return std::nullopt;
  const i64 channels = s->image_in_rows ? s->rows : s->columns, filters = s->image_in_rows ? s->columns : s->rows;
  if (*images < 2 || *images > kLargest || filters < kFewest) return std::nullopt;
  const i64 taps = down->taps * across->taps;
  if (taps > 1 && down->pixels * across->pixels <= taps) return std::nullopt;
  return GradientShape{*images, image(batch.at), cotangent(batch.at), channels, filters, s->out_row, s->image_in_rows,
                       *down,   *across};
}

class GradientRegisters final : public ConvKernel {
 public:
  GradientRegisters(const ConvPlan& c, const GradientShape& s, const GradientTilesTable& t, const Blocking& blocking)
      : ConvKernel(Offsets<Dim>{c.image_offset, c.weight_offset}, nullptr), s_(s), t_(t) {
    const i64 all = ceil_div(s.images, 2);
    sets_ = ceil_div(all, 16), pairs_ = ceil_div(all, sets_), together_ = std::max<i64>(1, 16 / pairs_);
    steps_ = ceil_div(s.x.pixels, together_);
    slots_ = ceil_div(s.x.length, s.x.stride) + together_ - 1;
    // Rows of a block: what is rounded of both factors is a share of the last level of caches.
    const i64 of_row = image_blocks() * s.y.stride * image_row() + cotangent_blocks() * cotangent_row();
    const i64 reach = s.y.dilation * (s.y.taps - 1) + 1;
    rows_ = std::clamp<i64>((blocking.llc_bytes(4) - reach * image_blocks() * image_row()) / of_row, 1, s.y.pixels);
    set_figures("conv_filter_gradient_bf16_" + std::string(t.name),
                2 * s.channels * s.filters * taps() * s.images * s.y.pixels * s.x.pixels);
    set_scratch(at_bytes() + image_bytes() + cotangent_bytes() + tasks() * taps() * kSums, 0);
  }
  void run(const HostLaunch& l) const override;

 private:
  static constexpr i64 kStep = 1024;  // bytes of a register
  static constexpr i64 kSums = 4096;  // bytes of the sums of 32 times 32 channels
  static constexpr i64 kChunk = 16;   // steps whose factors all taps read before the next
  template <class T>
  struct Offsets {
    T image = 0, cotangent = 0;
    template <class F>
    void each(const F& f) {
      f(image), f(cotangent);
    }
  };
  struct Job {
    const GradientRegisters& k;
    const float *image, *cotangent;
    float* out;
    i64* at;  // offset of each step in the rounded image
    std::byte *rounded, *transposed;
    float* sums;
    i64 first = 0, rows = 0, parts = 1;  // output rows of the block; parts of the taps
  };
  i64 taps() const { return s_.y.taps * s_.x.taps; }
  i64 image_blocks() const { return ceil_div(s_.channels, 16); }
  i64 cotangent_blocks() const { return ceil_div(s_.filters, 16); }
  i64 tasks() const { return ceil_div(image_blocks(), 2) * ceil_div(cotangent_blocks(), 2); }
  i64 pixel() const { return pairs_ * 64; }
  i64 set_row() const { return s_.x.stride * slots_ * pixel(); }  // bytes of a row of a set of images
  i64 image_row() const { return sets_ * set_row(); }
  i64 cotangent_row() const { return sets_ * steps_ * kStep; }
  i64 image_rows(i64 rows) const { return s_.y.stride * (rows - 1) + s_.y.dilation * (s_.y.taps - 1) + 1; }
  i64 image_plane() const { return image_rows(rows_) * image_row(); }
  i64 cotangent_plane() const { return rows_ * cotangent_row(); }
  i64 image_bytes() const { return image_blocks() * image_plane(); }
  i64 cotangent_bytes() const { return cotangent_blocks() * cotangent_plane(); }
  i64 at_bytes() const { return round_up(8 * rows_ * sets_ * steps_, 64); }
  // Images of a set.
  i64 images(i64 set) const { return std::clamp<i64>(s_.images - set * 2 * pairs_, 0, 2 * pairs_); }
  void round_row(const Job& j, i64 row, i64 set) const;
  void transpose_row(const Job& j, i64 row, i64 set) const;
  void add(const Job& j, i64 task) const;
  void put(const Job& j, i64 task) const;

  GradientShape s_;
  const GradientTilesTable& t_;
  i64 sets_ = 1, pairs_ = 1, together_ = 1;  // sets of images; pairs of a set; pixels of a step
  i64 steps_ = 1, slots_ = 1, rows_ = 1;     // steps of a row; pixels of a row with one remainder; rows of a block
};

// Rounds a row of the block's image. Pixels that one tap reads one after the other are neighbours: those with the same
// remainder by the stride.
void GradientRegisters::round_row(const Job& j, i64 row, i64 set) const {
  const i64 y = j.first * s_.y.stride + row;
  const bool inside = y >= s_.y.lo && y < s_.y.hi;
  std::byte* to = j.rounded + row * image_row() + set * set_row();
  for (i64 rest = 0; rest < s_.x.stride; ++rest, to += slots_ * pixel()) {
    const auto slot = [&](i64 x) {
      return std::clamp<i64>(ceil_div(std::max<i64>(x - rest, 0), s_.x.stride), 0, slots_);
    };
    const i64 lo = inside ? slot(s_.x.lo) : slots_, hi = inside ? std::max(lo, slot(s_.x.hi)) : slots_;
    for (i64 b = 0; b < image_blocks(); ++b) {
      std::fill_n(to + b * image_plane(), lo * pixel(), std::byte{0});
      std::fill_n(to + b * image_plane() + hi * pixel(), (slots_ - hi) * pixel(), std::byte{0});
    }
    if (lo == hi) continue;
    const ImagePixels p{j.image + set * 2 * pairs_ * s_.image + y * s_.y.unit + (rest + lo * s_.x.stride) * s_.x.unit,
                        s_.image,
                        images(set),
                        s_.x.stride * s_.x.unit,
                        hi - lo,
                        s_.channels};
    t_.image(&p, pairs_, to + lo * pixel(), pixel(), image_plane());
  }
}

void GradientRegisters::transpose_row(const Job& j, i64 row, i64 set) const {
  std::byte* to = j.transposed + row * cotangent_row() + set * steps_ * kStep;
  const float* from = j.cotangent + set * 2 * pairs_ * s_.cotangent + (j.first + row) * s_.y.cotangent;
  for (i64 x = 0; x < s_.x.pixels; x += together_, to += kStep) {
    const ImagePixels p{from + x * s_.x.cotangent,
                        s_.cotangent,
                        images(set),
                        s_.x.cotangent,
                        std::min(together_, s_.x.pixels - x),
                        s_.filters};
    t_.cotangent(&p, pairs_, to, cotangent_plane());
  }
}

// Adds the block's products to the sums of 32 channels of both factors, for one part of the taps.
void GradientRegisters::add(const Job& j, i64 task) const {
  const i64 part = task % j.parts, pair = task / j.parts, across = ceil_div(image_blocks(), 2);
  const i64 o = pair / across * 2, c = pair % across * 2, all = j.rows * sets_ * steps_;
  const i64 begin = part * s_.y.taps / j.parts, end = (part + 1) * s_.y.taps / j.parts;
  const auto other = [](i64 b, i64 blocks) { return std::min(b + 1, blocks - 1); };  // an odd one is its own neighbour
  const std::byte* const cotangent[2] = {j.transposed + o * cotangent_plane(),
                                         j.transposed + other(o, cotangent_blocks()) * cotangent_plane()};
  const std::byte* const image[2] = {j.rounded + c * image_plane(),
                                     j.rounded + other(c, image_blocks()) * image_plane()};
  t_.begin(static_cast<int>(pairs_ * together_));
  for (i64 k = 0; k < all; k += kChunk)
    for (i64 y = begin; y < end; ++y)
      for (i64 x = 0; x < s_.x.taps; ++x) {
        const i64 at = x * s_.x.dilation, slot = at % s_.x.stride * slots_ + at / s_.x.stride;
        const i64 shift = y * s_.y.dilation * image_row() + slot * pixel();
        const std::byte* const a[2] = {cotangent[0] + k * kStep, cotangent[1] + k * kStep};
        const std::byte* const b[2] = {image[0] + shift, image[1] + shift};
        t_.tiles(a, b, j.at + k, std::min(kChunk, all - k), j.sums + (pair * taps() + y * s_.x.taps + x) * kSums / 4,
                 j.first > 0 || k > 0);
      }
  t_.end();
}

void GradientRegisters::put(const Job& j, i64 task) const {
  const i64 pair = task / taps(), tap = task % taps(), across = ceil_div(image_blocks(), 2);
  float* out = j.out + tap / s_.x.taps * s_.y.out + tap % s_.x.taps * s_.x.out;
  for (i64 n = 0; n < 4; ++n) {
    const i64 o = (pair / across * 2 + n / 2) * 16, c = (pair % across * 2 + n % 2) * 16;
    if (o < s_.filters && c < s_.channels)
      t_.put(j.sums + (task * 4 + n) * 256, std::min<i64>(16, s_.filters - o), std::min<i64>(16, s_.channels - c),
             s_.filters_last ? out + c * s_.out_row + o : out + o * s_.out_row + c, s_.out_row, s_.filters_last);
  }
}

void GradientRegisters::run(const HostLaunch& l) const {
  Offsets<i64> from;
  read_sizes(l.sizes.data(), from);
  std::byte* rounded = l.scratch + at_bytes();
  Job j{*this,
        static_cast<const float*>(l.in[0]) + from.image,
        static_cast<const float*>(l.in[1]) + from.cotangent,
        static_cast<float*>(l.out),
        reinterpret_cast<i64*>(l.scratch),
        rounded,
        rounded + image_bytes(),
        reinterpret_cast<float*>(rounded + image_bytes() + cotangent_bytes())};
  for (i64 n = 0; n < rows_ * sets_ * steps_; ++n)
    j.at[n] = n / (sets_ * steps_) * s_.y.stride * image_row() + n / steps_ % sets_ * set_row() +
              n % steps_ * together_ * pixel();
  j.parts = tasks() < 4 * l.parallel.workers() ? s_.y.taps : 1;
  for (; j.first < s_.y.pixels; j.first += rows_) {
    j.rows = std::min(rows_, s_.y.pixels - j.first);
    const auto copy = [](void* arg, int number, int) {
      const Job& k = *static_cast<const Job*>(arg);
      const i64 row = number / k.k.sets_, set = number % k.k.sets_, image = k.k.image_rows(k.rows);
      if (row < image) k.k.round_row(k, row, set);
      else k.k.transpose_row(k, row - image, set);
    };
    l.parallel.run(static_cast<int>((image_rows(j.rows) + j.rows) * sets_), copy, &j);
    const auto multiply = [](void* arg, int number, int) {
      const Job& k = *static_cast<const Job*>(arg);
      k.k.add(k, number);
    };
    l.parallel.run(static_cast<int>(tasks() * j.parts), multiply, &j);
  }
  const auto finish = [](void* arg, int number, int) {
    const Job& k = *static_cast<const Job*>(arg);
    k.k.put(k, number);
  };
  l.parallel.run(static_cast<int>(tasks() * taps()), finish, &j);
}

}  // namespace

const GradientTilesTable& gradient_tiles(const Target& target) {
  const bool real = !tiles_emulated() && on_tiles(*microkernel(Arithmetic::Bf16, target));
  return real ? kGradientTilesAmx : kGradientTilesEmulated;
}

std::optional<std::string> gradient_registers_refusal(const ConvPlan& c) {
  if (gradient_shape(c)) return std::nullopt;
  return "there is one image, there are groups, fewer than 16 filters or no more pixels than taps, or a size is "
         "symbolic";
}

std::shared_ptr<HostKernel> gradient_registers_kernel(const ConvPlan& c, const GradientTilesTable& table,
                                                      const Blocking& blocking) {
  return std::make_shared<GradientRegisters>(c, *gradient_shape(c), table, blocking);
}

}  // namespace lc::backends::cpu
