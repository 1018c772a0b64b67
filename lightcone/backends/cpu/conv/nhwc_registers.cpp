// Channels-last convolutions in bf16 on tile registers: nhwc_bf16.h.
#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/nhwc_bf16.h"
#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
#include "lightcone/backends/cpu/conv/register_filters.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
class RegistersKernel final : public ConvKernel {
 public:
  static constexpr i64 kChannels = 32;     // channels of a pixel in a row of a register
  static constexpr i64 kMostTiles = 1024;  // registers of pixels of a task
  RegistersKernel(const ConvPlan& c, const NhwcShape& s, std::shared_ptr<const Epilogue> epilogue,
                  const ConvTilesTable& t, const Blocking& blocking)
      : ConvKernel(BatchSizes<Dim>{c.image_offset, c.pixels[0].extent}, std::move(epilogue)),
        s_(s),
        t_(t),
        number_(c.bf16_image ? 2 : 4),
        apart_(this->epilogue() && this->epilogue()->apart()),
        l2_(blocking.l2()),
        window_(narrow_window(s)),
        pixel_(window_ ? 2 * NarrowWindow::kChannels : 2 * kChannels),
        blocks_(window_ ? 1 : ceil_div(s.channels, kChannels)) {
    const i64 row = s.x.length * s.channels;
    y_step_ = s.y.step / row, x_step_ = s.x.step / s.channels, reach_ = s.y.length - (s.y.extent - 1) * y_step_;
    find_taps(row);
    whole_rows_ = apart_ && taps_.size() == 1 && !window_ && s.rows > 2 * kStrip &&
                  std::min(s.rows, kWholeRows * kStrip) * s.channels * 2 <= l2_ / 2;
    across_ = ceil_div(s.x.extent, 16), wide_ = ceil_div(s.x.extent, across_);
    // Rows of a task: its part of the image takes three eighths of L2.
    const i64 budget = l2_ * 3 / 8 / (row_bytes() * blocks_);
    most_ = std::clamp<i64>((budget - 2 * reach_) / (y_step_ + ceil_div(reach_, s.y.extent)), 1,
                            std::max<i64>(1, kMostTiles / across_));
    set_figures("conv_nhwc_bf16_" + std::string(t.name),
                Dim(2 * s.rows * s.depth * s.y.extent * s.x.extent) * c.pixels[0].extent);
    if (!c.packed) filters_.emplace(*filters_in_memory(c), t);
    set_scratch(filters_ ? filters_->bytes() : 0, worker_bytes());
  }
  void run(const HostLaunch& l) const override;

 private:
  static constexpr i64 kStrip = 32, kStep = 2048;  // output channels of a strip, and bytes of their weights in a step
  static constexpr i64 kTogether = 4;              // pairs of registers whose sums stay in L1
  static constexpr i64 kChunk = 18;                // steps whose weights stay there, about: 36 KB
  static constexpr i64 kEpilogue = 256;            // pixels after which the epilogue runs, while they are in the cache
  static constexpr i64 kWholeRows = 16;            // strips that pixels are multiplied by before the next pixels
  static constexpr i64 kTileFloats = 512;          // sums of a register of pixels
  struct Tap {
    i64 y, x;  // in the padded image
  };
  struct Job {
    const RegistersKernel& k;
    const HostLaunch& l;
    const std::byte* image;
    const std::byte* weights;             // packed
    std::byte* scratch;                   // the workers'
    i64 rows = 0;                         // output rows of all images
    i64 down = 1, strips = 1, parts = 1;  // parts of the rows; strips of a task, and parts of the strips
  };
  // What a task has prepared: addresses of registers of pixels, and offsets of steps.
  struct Pixels {
    const std::byte* at[kMostTiles + 1];
    i64 tiles = 0, row = 0;  // the first output row
    const i64* steps = nullptr;
    float* apart = nullptr;  // sums of a strip, or of whole rows, if they are kept apart from the epilogue's result
  };

  void find_taps(i64 row);
  i64 row_bytes() const { return s_.x.length * pixel_; }
  i64 steps() const { return blocks_ * static_cast<i64>(taps_.size()); }
  i64 copied(i64 rows) const { return rows * y_step_ + (rows / s_.y.extent + 2) * reach_; }
  i64 planes_bytes() const { return round_up(copied(most_) * row_bytes() * blocks_, 64); }
  i64 apart_bytes() const {
    if (!apart_) return 0;
    return (whole_rows_ ? 2 * kTogether * 16 * kWholeRows : kEpilogue + 2 * kTogether * 16) * kStrip * 4;
  }
  i64 worker_bytes() const { return planes_bytes() + apart_bytes() + round_up(8 * steps(), 64); }
  void share_out(Job& j, int workers) const;
  void copy_row(const std::byte* image, i64 y, std::byte* to, i64 plane) const;
  void move(const std::byte* from, i64 n, std::byte* to, i64 plane) const;
  void prepare(const Job& j, i64 row, i64 rows, std::byte* to, Pixels& p) const;
  void strip(const Job& j, const Pixels& p, i64 strip, bool more) const;
  void whole_rows(const Job& j, const Pixels& p, i64 first, i64 last) const;
  void multiply(const Job& j, const Pixels& p, i64 first, i64 last, i64 strip, float* sums, TilesAhead& ahead) const;
  void put(const Job& j, const Pixels& p, i64 first, i64 last, i64 done, i64 strip, const float* sums) const;
  void finish(const Job& j, const Pixels& p, i64 first, i64 count, i64 strip) const;
  i64 pixel(const Pixels& p, i64 tile) const {
    return (p.row + tile / across_) * s_.x.extent + std::min(tile % across_ * wide_, s_.x.extent);
  }
  void share(const Job& j, int task, int worker) const;

  NhwcShape s_;
  const ConvTilesTable& t_;
  i64 number_;  // bytes of a number of the image
  bool apart_;  // sums are kept apart from the epilogue's result
  // All channels of some pixels are computed before the next pixels. There are few products for each number of such a
  // result, so that it, and what the epilogue adds, are run through as they lie in memory.
  bool whole_rows_ = false;
  i64 l2_;
  std::optional<NarrowWindow> window_;       // for few channels
  std::optional<RegisterFilters> filters_;   // to be packed in each run
  i64 pixel_, blocks_;                       // bytes of a pixel; planes of channels
  i64 y_step_ = 1, x_step_ = 1, reach_ = 1;  // between windows; rows of a window
  std::vector<Tap> taps_;
  i64 across_ = 1, wide_ = 1, most_ = 1;  // registers of a row; pixels of a register; rows of a task, at most
};

void RegistersKernel::find_taps(i64 row) {
  if (window_) {
    for (i64 n = 0; n < window_->down.extent; ++n) taps_.push_back({n * window_->down.read / row, 0});
    return;
  }
  for (i64 n = 0, taps = s_.depth / s_.channels; n < taps; ++n) {
    i64 at = 0, rest = n;
    for (std::size_t i = s_.sums.size() - 1; i-- > 0; rest /= s_.sums[i].extent)
      at += rest % s_.sums[i].extent * s_.sums[i].read;
    taps_.push_back({at / row, at % row / s_.channels});
  }
}

// Copies pixels of bf16 to planes.
void RegistersKernel::move(const std::byte* from, i64 n, std::byte* to, i64 plane) const {
  for (i64 p = 0; p < n; ++p, from += s_.x.unit * 2, to += 2 * kChannels) {
    i64 b = 0;
    for (; (b + 1) * kChannels <= s_.channels; ++b)
      std::memcpy(to + b * plane, from + b * 2 * kChannels, 2 * kChannels);
    if (b == blocks_) continue;
    const i64 rest = 2 * (s_.channels - b * kChannels);
    std::memcpy(to + b * plane, from + b * 2 * kChannels, static_cast<std::size_t>(rest));
    std::fill_n(to + b * plane + rest, 2 * kChannels - rest, std::byte{0});
  }
}

// Copies a row of the padded image, rounded.
void RegistersKernel::copy_row(const std::byte* image, i64 y, std::byte* to, i64 plane) const {
  const bool inside = y >= s_.y.lo && y < s_.y.hi;
  const i64 lo = inside ? s_.x.lo : s_.x.length, hi = inside ? s_.x.hi : s_.x.length;
  for (i64 b = 0; b < blocks_; ++b) {
    std::fill_n(to + b * plane, lo * pixel_, std::byte{0});
    std::fill_n(to + b * plane + hi * pixel_, (s_.x.length - hi) * pixel_, std::byte{0});
  }
  if (!inside) return;
  const std::byte* numbers = image + (y * s_.y.unit + lo * s_.x.unit) * number_;
  to += lo * pixel_;
  if (number_ == 2) return move(numbers, hi - lo, to, plane);
  const auto* from = reinterpret_cast<const float*>(numbers);
  if (window_) t_.round_few(from, s_.x.unit, s_.channel_step, hi - lo, s_.channels, to);
  else t_.round(from, s_.x.unit, hi - lo, s_.channels, to, plane);
}

// Rounds the rows of the image that output rows [row, row + rows) read, image by image. The last register of an output
// row may overlap the one before it.
void RegistersKernel::prepare(const Job& j, i64 row, i64 rows, std::byte* to, Pixels& p) const {
  const i64 in_row = row_bytes();
  i64 in_rows = 0;
  const auto images = [&](const auto& f) {
    for (i64 r = row; r < row + rows;) {
      const i64 y = r % s_.y.extent, n = std::min(row + rows - r, s_.y.extent - y);
      f(r / s_.y.extent, y, n, (n - 1) * y_step_ + reach_);
      r += n;
    }
  };
  images([&](i64, i64, i64, i64 read) { in_rows += read; });
  const i64 plane = in_rows * in_row;
  std::byte* behind = to + planes_bytes();
  if (apart_) p.apart = reinterpret_cast<float*>(behind);
  auto* offsets = reinterpret_cast<i64*>(behind + apart_bytes());
  p.steps = offsets, p.row = row;
  for (i64 b = 0; b < blocks_; ++b)
    for (const Tap& t : taps_) *offsets++ = b * plane + t.y * in_row + t.x * pixel_;
  images([&](i64 image, i64 y, i64 n, i64 read) {
    for (i64 i = 0; i < read; ++i)
      copy_row(j.image + image * s_.batch_image * number_, y * y_step_ + i, to + i * in_row, plane);
    for (i64 i = 0; i < n * across_; ++i) {
      const i64 x = std::min(i % across_ * wide_, s_.x.extent - wide_);
      p.at[p.tiles++] = to + i / across_ * y_step_ * in_row + x * x_step_ * pixel_;
    }
    to += read * in_row;
  });
  p.at[p.tiles] = p.at[p.tiles - 1];  // an odd one is its own neighbour
}

// Puts down registers [first, last), without the pixels that the register before has, too. The epilogue has run for
// those before `done`.
void RegistersKernel::put(const Job& j, const Pixels& p, i64 first, i64 last, i64 done, i64 strip,
                          const float* sums) const {
  const i64 columns = std::min(kStrip, s_.rows - strip * kStrip);
  const i64 row = whole_rows_ ? kWholeRows * kStrip : apart_ ? kStrip : s_.rows;
  auto* out = whole_rows_ ? p.apart + strip % kWholeRows * kStrip - pixel(p, done) * row
              : apart_    ? p.apart - pixel(p, done) * row
                          : static_cast<float*>(j.l.out) + strip * kStrip;
  const bool streamed = !epilogue() && j.rows * s_.x.extent * s_.rows * 4 > l2_;
  for (i64 q = first; q < last; ++q, sums += kTileFloats) {
    const i64 overlap = std::max<i64>(0, q % across_ * wide_ - (s_.x.extent - wide_));
    t_.put(sums, overlap, wide_, columns, out + pixel(p, q) * row, row, streamed);
  }
}

// Runs the epilogue on some pixels of a strip.
void RegistersKernel::finish(const Job& j, const Pixels& p, i64 first, i64 count, i64 strip) const {
  const auto* in = j.l.in.data() + 2;
  const i64 begin = strip * kStrip, end = std::min(s_.rows, begin + kStrip);
  if (apart_) epilogue()->run_apart(in, p.apart, kStrip, j.l.out, epilogue_sizes(j.l), first, count, begin, end);
  else if (epilogue()) epilogue()->run(in, static_cast<float*>(j.l.out), epilogue_sizes(j.l), first, count, begin, end);
}

// Multiplies registers [first, last) by the weights of 32 output channels.
void RegistersKernel::multiply(const Job& j, const Pixels& p, i64 first, i64 last, i64 strip, float* sums,
                               TilesAhead& ahead) const {
  const i64 taps = static_cast<i64>(taps_.size()), chunk = std::max<i64>(1, kChunk / taps) * taps, all = steps();
  const auto* weights = j.weights + strip * all * kStep;
  for (i64 k = 0; k < all; k += chunk)
    t_.tiles(p.at + first, (last - first + 1) / 2, p.steps + k, std::min(chunk, all - k), x_step_ * pixel_,
             weights + k * kStep, sums, k > 0, &ahead);
}

// Computes the output channels of strips [first, last).
void RegistersKernel::whole_rows(const Job& j, const Pixels& p, i64 first, i64 last) const {
  alignas(64) float sums[kTogether * 2 * kTileFloats];
  TilesAhead ahead;
  for (i64 s = first; s < last; s += kWholeRows - s % kWholeRows) {
    const i64 end = std::min(last, (s / kWholeRows + 1) * kWholeRows);
    for (i64 q = 0; q < p.tiles; q += 2 * kTogether) {
      const i64 q_end = std::min(p.tiles, q + 2 * kTogether), at = pixel(p, q);
      for (i64 n = s; n < end; ++n) {
        multiply(j, p, q, q_end, n, sums, ahead);
        put(j, p, q, q_end, q, n, sums);
      }
      epilogue()->run_apart(j.l.in.data() + 2, p.apart + s % kWholeRows * kStrip, kWholeRows * kStrip, j.l.out,
                            epilogue_sizes(j.l), at, pixel(p, q_end) - at, s * kStrip, std::min(s_.rows, end * kStrip));
    }
  }
}

// Computes 32 output channels. `more`: this task's next strip follows.
void RegistersKernel::strip(const Job& j, const Pixels& p, i64 strip, bool more) const {
  alignas(64) float sums[kTogether * 2 * kTileFloats];
  const i64 all = steps(), pairs = (p.tiles + 1) / 2;
  const auto* next = j.weights + (strip + 1) * all * kStep;
  TilesAhead ahead;
  if (more) ahead = {next, next + all * kStep, std::max<i64>(64, round_up(kStep / pairs, 64))};
  i64 done = 0;  // registers whose epilogue has run
  for (i64 q = 0; q < p.tiles; q += 2 * kTogether) {
    const i64 end = std::min(p.tiles, q + 2 * kTogether);
    multiply(j, p, q, end, strip, sums, ahead);
    put(j, p, q, end, done, strip, sums);
    const i64 first = pixel(p, done), count = pixel(p, end) - first;
    if (count < kEpilogue && end < p.tiles) continue;
    finish(j, p, first, count, strip);
    done = end;
  }
}

void RegistersKernel::share(const Job& j, int task, int worker) const {
  const i64 part = task / j.parts, row = part * j.rows / j.down, end = (part + 1) * j.rows / j.down;
  const i64 first = task % j.parts * j.strips, last = std::min(first + j.strips, ceil_div(s_.rows, kStrip));
  if (row == end || first >= last) return;
  Pixels p;
  prepare(j, row, end - row, j.scratch + worker * worker_bytes(), p);
  t_.begin(static_cast<int>(wide_), static_cast<int>(window_ ? window_->across.extent * pixel_ : pixel_));
  if (whole_rows_) whole_rows(j, p, first, last);
  else
    for (i64 n = first; n < last; ++n) strip(j, p, n, n + 1 < last);
  t_.end();
}

// Takes the division that ends first, by rough cycles: a product of registers takes one for each row.
void RegistersKernel::share_out(Job& j, int workers) const {
  constexpr i64 kWeights = 100, kRounding = 6, kRounds = 4;  // cycles of a step's weights, and of a row of a register
  const i64 strips = ceil_div(s_.rows, kStrip), fewest = ceil_div(j.rows, most_);
  i64 least = 0;
  for (i64 n = 1; n <= std::min<i64>(strips, 2 * workers); ++n) {
    const i64 height = ceil_div(strips, n), parts = ceil_div(strips, height);
    const i64 rounds = ceil_div(fewest * parts, workers);
    for (i64 r = rounds; r < rounds + kRounds; ++r) {
      const i64 down = std::clamp(r * workers / parts, fewest, j.rows), rows = ceil_div(j.rows, down);
      const i64 cost =
          ceil_div(down * parts, workers) * (height * steps() * (2 * rows * across_ * wide_ + kWeights) +
                                             (rows * y_step_ + reach_) * s_.x.length * blocks_ * kRounding);
      if (least > 0 && cost >= least) continue;
      least = cost, j.down = down, j.strips = height, j.parts = parts;
    }
  }
}

void RegistersKernel::run(const HostLaunch& l) const {
  BatchSizes<i64> s;
  read_sizes(l.sizes.data(), s);
  Job j{*this,
        l,
        static_cast<const std::byte*>(l.in[0]) + s.image_offset * number_,
        static_cast<const std::byte*>(l.in[1]),
        l.scratch,
        s.images * s_.y.extent};
  if (j.rows <= 0) return;
  if (filters_) {
    filters_->pack(l.in[1], l.scratch, l.parallel);
    j.weights = l.scratch, j.scratch += filters_->bytes();
  }
  share_out(j, l.parallel.workers());
  const auto task = [](void* arg, int number, int worker) {
    const Job& k = *static_cast<const Job*>(arg);
    k.k.share(k, number, worker);
  };
  l.parallel.run(static_cast<int>(j.down * j.parts), task, &j);
}

// Windows of one pixel that leave pixels out: the copy has the pixels that are read.
bool gathered(NhwcShape& s) {
  if (s.copy || s.sums.size() != 1 || s.x.step == s.depth) return false;
  s.channels = s.depth, s.channel_step = 1, s.copy = true;
  for (NhwcShape::Axis* a : {&s.y, &s.x}) a->unit = a->step, a->lo = 0, a->hi = a->length = a->extent;
  s.x.step = s.channels, s.y.step = s.x.length * s.channels, s.batch_step = s.y.length * s.y.step;
  return true;
}

// The sizes of `c`, if this kernel computes it.
std::optional<NhwcShape> registers_shape(const ConvPlan& c) {
  constexpr i64 kFewest = 16, kLongest = 1 << 18;  // channels; channels of a window's rows
  if (!c.channels_last || is_depthwise_nhwc(c)) return std::nullopt;
  auto s = nhwc_shape(c);
  if (!s || (!s->copy && !gathered(*s)) || s->sums.empty()) return std::nullopt;
  if (s->rows < kFewest || s->x.extent > 16 * RegistersKernel::kMostTiles) return std::nullopt;
  const bool wide = s->channels >= kFewest && s->channels == s->sums.back().extent && s->channel_step == 1;
  if (!wide && !narrow_window(*s)) return std::nullopt;
  constexpr i64 kFarthest = 1 << 26;  // numbers between filters: 16 of them are gathered by offsets of 32 bits
  const auto filters = filters_in_memory(c);
  if (!filters || std::abs(filters->row) > kFarthest) return std::nullopt;
  const i64 row = s->x.length * s->channels;
  return (s->y.length - (s->y.extent - 1) * (s->y.step / row)) * row <= kLongest ? s : std::nullopt;
}

}  // namespace

const ConvTilesTable& conv_tiles(const Target& target) {
  const bool real = !tiles_emulated() && on_tiles(*microkernel(Arithmetic::Bf16, target));
  return real ? kConvTilesAmx : kConvTilesEmulated;
}

std::optional<NarrowWindow> narrow_window(const NhwcShape& s) {
  if (!s.copy || s.channels > NarrowWindow::kChannels) return std::nullopt;
  const i64 row = s.x.length * s.channels;
  NarrowWindow w;
  for (const NhwcShape::Sum& sum : s.sums) {
    NhwcShape::Sum& to = sum.read >= row ? w.down : sum.read == s.channels ? w.across : w.channels;
    if (to.extent != 1 || (&to == &w.down ? sum.read % row != 0 : &to == &w.channels && sum.read != 1))
      return std::nullopt;
    to = sum;
  }
  return w.across.extent <= NarrowWindow::kPixels && w.channels.extent == s.channels ? std::optional(w) : std::nullopt;
}

std::optional<std::string> nhwc_registers_refusal(const ConvPlan& c) {
  if (is_depthwise_nhwc(c)) return "each channel has its own filters";
  if (!nhwc_shape(c)) return nhwc_refusal(c);
  if (!registers_shape(c))
    return "nothing is padded or left out, there are 5 to 15 channels or fewer than 16 filters, or a window is too "
           "long";
  return std::nullopt;
}

bool nhwc_registers_reads_bf16(const ConvPlan& c) {
  const auto s = registers_shape(c);
  return s && !narrow_window(*s) && s->channel_step == 1;
}

std::shared_ptr<HostKernel> nhwc_registers_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                                  const ConvTilesTable& table, const Blocking& blocking) {
  return std::make_shared<RegistersKernel>(c, *registers_shape(c), std::move(epilogue), table, blocking);
}

}  // namespace lc::backends::cpu
