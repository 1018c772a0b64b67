// Depthwise convolution with contiguous pixels (NCHW). A task copies the rows of a plane that some output rows read,
// with padding around them and separated into the phases of the stride. In the copy every tap is a shift, and borders
// need no special code.
#include "lightcone/backends/cpu/conv/depthwise.h"

#include <algorithm>
#include <numeric>

#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kMostFilters = 4;  // filters per plane; more are a matrix product
constexpr i64 kMostTaps = 1 << 10;
constexpr i64 kMostCopied = 1 << 15;  // floats that one output row may need
constexpr i64 kGroup = 16;            // small bands that are copied at a time
constexpr i64 kTask = 1 << 14;        // multiplications worth a task
constexpr i64 kTasks = 4;             // tasks per worker, about

bool is_padded(const ConvPlan::Pixel& p) { return !(p.lo == Dim(-ConvPlan::kFar)) || !(p.hi == Dim(ConvPlan::kFar)); }

// Finds which sum moves along which pixel axis, y or x: by the padding's coordinates, else by the order of the strides.
// sum_of is -1 for an axis without a sum. Returns false if the sums are no windows.
bool find_windows(const ConvPlan& c, int (&sum_of)[kSpatial]) {
  std::vector<int> unknown;
  std::fill(std::begin(sum_of), std::end(sum_of), -1);
  for (int i = 0; i < static_cast<int>(c.sums.size()); ++i) {
    const auto& s = c.sums[i];
    const auto extent = s.extent.constant();
    if (!extent || *extent < 1 || s.dilation[0] != 0 || (s.dilation[1] != 0 && s.dilation[2] != 0)) return false;
    if (*extent == 1) continue;
    const int axis = s.dilation[1] != 0 ? 1 : s.dilation[2] != 0 ? 2 : 0;
    if (axis == 0) unknown.push_back(i);
    else if (sum_of[axis] >= 0) return false;
    else sum_of[axis] = i;
  }
  const auto free = [&](int j) { return sum_of[j] < 0 && !is_padded(c.pixels[j]); };
  if (unknown.size() == 2 && free(1) && free(2)) {
    sum_of[1] = unknown[0], sum_of[2] = unknown[1];
  } else if (unknown.size() == 1) {
    const auto& s = c.sums[unknown[0]];
    const auto stride = s.image.constant(), row = c.pixels[1].image.constant();
    if (!stride || !row) return false;
    const bool in_row = free(2) && (!free(1) || c.pixels[1].extent == Dim(1) || *stride < *row);
    if (!in_row && !free(1)) return false;
    sum_of[in_row ? 2 : 1] = unknown[0];
  } else if (!unknown.empty()) {
    return false;
  }
  return true;
}

bool find_axis(const ConvPlan::Pixel& p, const ConvPlan::Sum* s, int j, Depthwise::Axis& a) {
  const auto extent = p.extent.constant(), image = p.image.constant(), lo = p.lo.constant(), hi = p.hi.constant();
  if (!extent || !image || !lo || !hi || *extent < 1 || *image < 0) return false;
  a.extent = *extent;
  i64 stride = 0;
  if (s) {
    const auto tap = s->image.constant(), weight = s->weight.constant();
    if (!tap || !weight || *tap <= 0) return false;
    stride = *tap, a.taps = *s->extent.constant(), a.weight = *weight;
  }
  if (is_padded(p) || p.step != 0) {  // coordinates are explicit
    if (p.step < 0 || (p.step == 0 && a.extent > 1)) return false;
    a.step = std::max<i64>(p.step, 1);
    a.dilation = s ? s->dilation[j] : 0;
    if (a.dilation < 0 || (s && (a.dilation == 0 || stride % a.dilation != 0))) return false;
    a.unit = s ? stride / a.dilation : *image / a.step;
    if (p.step > 0 && *image != a.step * a.unit) return false;
    a.lo = std::clamp<i64>(*lo, 0, a.span()), a.hi = std::clamp<i64>(*hi, a.lo, a.span());
    return a.unit > 0;
  }
  if (a.extent > 1 && *image == 0) return false;
  a.unit = std::max<i64>(std::gcd(a.extent > 1 ? *image : 0, stride), 1);
  a.step = a.extent > 1 ? *image / a.unit : 1, a.dilation = stride / a.unit;
  if (s && a.dilation >= a.step * a.extent && a.extent > 1) return false;  // not a window: taps never overlap
  a.lo = 0, a.hi = a.span();
  return true;
}

bool find_axes(const ConvPlan& c, Depthwise& d) {
  int sum_of[kSpatial];
  if (!find_windows(c, sum_of)) return false;
  const auto sum = [&](int j) { return sum_of[j] < 0 ? nullptr : &c.sums[sum_of[j]]; };
  return find_axis(c.pixels[1], sum(1), 1, d.y) && find_axis(c.pixels[2], sum(2), 2, d.x) && d.taps() <= kMostTaps;
}

// The copy of the rows that a task reads.
struct Copy {
  i64 phases, phase, row;  // phases per row; floats of a phase; floats of a row
  i64 height = 1;          // output rows per task, at most
  i64 rows(const Depthwise& d, i64 of) const { return (of - 1) * d.y.step + d.y.reach() + 1; }
};
// Chooses the copy's sizes such that it has about `most` floats and stays in L1.
Copy copy_of(const Depthwise& d, i64 width, i64 most) {
  Copy c{std::min(d.x.step, d.x.reach() + 1), 0, 0};
  c.phase = round_up(round_up(d.x.extent, width) + d.x.reach() / d.x.step + 1, 16);
  c.row = c.phases * c.phase;
  const i64 fit = (most / c.row - d.y.reach() - 1) / d.y.step + 1;
  c.height = ceil_div(d.y.extent, ceil_div(d.y.extent, std::max<i64>(fit, 1)));
  return c;
}

template <class T>
struct DepthwiseSizes {
  T image_offset = 0, weight_offset = 0;
  std::array<AxisSizes<T>, ConvRun::kOuter> outer = {};
  std::size_t axes = 0;
  template <class F>
  void each(const F& f) {
    f(image_offset), f(weight_offset);
    for (std::size_t i = 0; i < axes; ++i) outer[i].each(f);
  }
};

DepthwiseSizes<Dim> depthwise_sizes(const ConvPlan& c) {
  DepthwiseSizes<Dim> s{.image_offset = c.image_offset, .weight_offset = c.weight_offset};
  for (const ConvPlan::Axis& a : c.outer) s.outer[s.axes++] = {a.extent, a.image, a.weight, a.out};
  return s;
}

class DepthwiseKernel final : public ConvKernel {
 public:
  DepthwiseKernel(const ConvPlan& c, const Depthwise& d, std::shared_ptr<const Epilogue> epilogue, const Target& target,
                  const Blocking& blocking)
      : ConvKernel(depthwise_sizes(c), std::move(epilogue)),
        d_(d),
        table_(kernel_tables(target.isa).depthwise),
        near_(blocking.l1_budget_floats()),
        copy_(copy_of(d, table_->width, near_)),
        outer_(c.outer.size()) {
    Dim flops = 2 * d.taps() * d.pixels() * d.filters;
    for (const ConvPlan::Axis& a : c.outer) flops = flops * a.extent;
    find_taps();
    set_figures("conv_depthwise", flops);
    set_scratch(0, worker_floats() * 4);
  }
  void run(const HostLaunch& l) const override;

 private:
  struct Band {
    const float *image, *weight;
    float* out;
    i64 begin, end;  // range of rows
  };
  struct Job {
    const DepthwiseKernel& k;
    const HostLaunch& l;
    DepthwiseSizes<i64> sizes;
    i64 bands, units, each;  // bands of rows per plane; bands in total; bands per task
  };
  i64 copied() const { return round_up(copy_.rows(d_, copy_.height) * copy_.row, 16); }
  i64 worker_floats() const { return group_ * copied() + round_up(d_.taps(), 16); }
  void find_taps();
  Band band(const Job& j, i64 unit) const;
  void copy_rows(const Band& b, float* to) const;
  void compute(const Band& b, const float* from, float* weights) const;
  void finish(const HostLaunch& l, const Band* bands, i64 count) const;

  Depthwise d_;
  const DepthwiseTable* table_;
  i64 near_;  // L1 budget, in floats
  Copy copy_;
  std::size_t outer_;
  i64 group_ = 1;                      // bands copied before any is computed: loads of new data are slow
  std::vector<i64> at_, weight_at_;    // offset of a tap across, in a row of the copy; weight offset of a tap
  std::vector<DepthwiseRows> phases_;  // per phase, for rows inside the image
  bool neighbours_ = true;             // the weights of a filter are contiguous
};

void DepthwiseKernel::find_taps() {
  const Depthwise::Axis& x = d_.x;
  for (i64 k = 0; k < x.taps; ++k) at_.push_back(k * x.dilation % x.step * copy_.phase + k * x.dilation / x.step);
  for (i64 t = 0; t < d_.taps(); ++t) {
    weight_at_.push_back(t / x.taps * d_.y.weight + t % x.taps * x.weight);
    neighbours_ = neighbours_ && weight_at_.back() == t;
  }
  const auto steps = [&x](i64 d) { return d <= 0 ? 0 : (d + x.step - 1) / x.step; };
  const i64 length = x.extent + x.reach() / x.step;
  for (i64 phase = 0; phase < copy_.phases; ++phase) {
    const i64 end = std::min(length, steps(x.hi - phase)), begin = std::min(end, steps(x.lo - phase));
    phases_.push_back({nullptr, d_.y.unit, x.step * x.unit, begin, end, length, copy_.row});
  }
  group_ = std::clamp<i64>(near_ / copied(), 1, kGroup);
}

DepthwiseKernel::Band DepthwiseKernel::band(const Job& j, i64 unit) const {
  const HostLaunch& l = j.l;
  i64 number = unit;
  Band b{static_cast<const float*>(l.in[0]) + j.sizes.image_offset,
         static_cast<const float*>(l.in[1]) + j.sizes.weight_offset, static_cast<float*>(l.out), 0, d_.y.extent};
  if (j.bands > 1) {
    number = unit / j.bands;
    b.begin = (unit - number * j.bands) * copy_.height, b.end = std::min(b.begin + copy_.height, d_.y.extent);
  }
  for (std::size_t i = outer_; i-- > 0;) {
    const AxisSizes<i64>& a = j.sizes.outer[i];
    const i64 at = number % a.extent;
    number /= a.extent;
    b.image += at * a.image, b.weight += at * a.weight, b.out += at * a.out;
  }
  return b;
}

void DepthwiseKernel::copy_rows(const Band& b, float* to) const {
  const i64 first = b.begin * d_.y.step, end = first + copy_.rows(d_, b.end - b.begin);
  const i64 lo = std::clamp(d_.y.lo, first, end), hi = std::clamp(d_.y.hi, lo, end);
  std::fill(to, to + (lo - first) * copy_.row, 0.0f);
  std::fill(to + (hi - first) * copy_.row, to + (end - first) * copy_.row, 0.0f);
  for (std::size_t p = 0; p < phases_.size(); ++p) {
    DepthwiseRows rows = phases_[p];
    const i64 phase = static_cast<i64>(p);
    rows.from = b.image + lo * d_.y.unit + phase * d_.x.unit;
    table_->copy(&rows, hi - lo, to + (lo - first) * copy_.row + phase * copy_.phase);
  }
}

void DepthwiseKernel::compute(const Band& b, const float* from, float* weights) const {
  const i64 rows = b.end - b.begin, tiles = ceil_div(rows, table_->mr);
  for (i64 f = 0; f < d_.filters; ++f) {
    const float* filter = b.weight + f * d_.weight_row;
    for (std::size_t t = 0; !neighbours_ && t < weight_at_.size(); ++t) weights[t] = filter[weight_at_[t]];
    const DepthwiseWindow w{neighbours_ ? filter : weights,   at_.data(), d_.y.taps, d_.x.taps, copy_.row, d_.y.step,
                            d_.y.taps > 1 ? d_.y.dilation : 1};
    float* out = b.out + f * d_.out_row + b.begin * d_.x.extent;
    for (i64 i = 0, r = 0, next = 0; i < tiles; ++i, r = next) {
      next = r + ceil_div(rows - r, tiles - i);
      table_->rows(&w, from + r * d_.y.step * copy_.row, out + r * d_.x.extent, next - r, d_.x.extent);
    }
  }
}

// Runs the epilogue on bands. Whole planes that are consecutive in memory are processed together.
void DepthwiseKernel::finish(const HostLaunch& l, const Band* bands, i64 count) const {
  auto* whole = static_cast<float*>(l.out);
  const i64 pixels = d_.pixels(), together = d_.out_row == pixels || d_.filters == 1 ? d_.filters : 1;
  for (i64 i = 0, n = 1; epilogue() && i < count; i += n) {
    const Band& b = bands[i];
    for (n = 1; together == d_.filters && b.end - b.begin == d_.y.extent && i + n < count &&
                bands[i + n].out == b.out + n * d_.filters * pixels;)
      ++n;
    for (i64 f = 0; f < d_.filters; f += together)
      epilogue()->run(l.in.data() + 2, whole, epilogue_sizes(l), (b.out + f * d_.out_row - whole) / pixels,
                      n * together, b.begin * d_.x.extent, b.end * d_.x.extent);
  }
}

void DepthwiseKernel::run(const HostLaunch& l) const {
  Job j{*this, l, {.axes = outer_}, ceil_div(d_.y.extent, copy_.height), 1, 1};
  read_sizes(l.sizes.data(), j.sizes);
  j.units = j.bands;
  for (std::size_t i = 0; i < outer_; ++i) j.units *= j.sizes.outer[i].extent;
  if (j.units <= 0) return;
  const i64 work = copy_.height * d_.x.extent * d_.taps() * d_.filters;
  j.each = std::max(ceil_div(j.units, kTasks * l.parallel.workers()), std::min(j.units, ceil_div(kTask, work)));
  const auto task = [](void* arg, int number, int worker) {
    const Job& j = *static_cast<Job*>(arg);
    const DepthwiseKernel& k = j.k;
    const i64 copied = k.copied(), end = std::min(j.units, (number + 1) * j.each);
    auto* scratch = reinterpret_cast<float*>(j.l.scratch) + worker * k.worker_floats();
    Band bands[kGroup];
    for (i64 first = number * j.each, n = 0; first < end; first += n) {
      n = std::min(k.group_, end - first);
      for (i64 i = 0; i < n; ++i) k.copy_rows(bands[i] = k.band(j, first + i), scratch + i * copied);
      for (i64 i = 0; i < n; ++i) k.compute(bands[i], scratch + i * copied, scratch + k.group_ * copied);
      k.finish(j.l, bands, n);
    }
  };
  l.parallel.run(static_cast<int>(ceil_div(j.units, j.each)), task, &j);
}

}  // namespace

std::optional<Depthwise> depthwise_shape(const ConvPlan& c) {
  Depthwise d;
  const auto filters = c.rows.extent.constant(), weight = c.rows.weight.constant(), out = c.rows.out.constant();
  if (c.channels_last || !(c.pixels[0].extent == Dim(1)) || is_padded(c.pixels[0]) || !filters || !weight || !out)
    return std::nullopt;
  d.filters = *filters, d.weight_row = *weight, d.out_row = *out;
  if (d.filters < 1 || d.filters > kMostFilters || !find_axes(c, d)) return std::nullopt;
  const Copy copy = copy_of(d, 16, kMostCopied);
  if (copy.row > kMostCopied || copy.rows(d, 1) * copy.row > kMostCopied) return std::nullopt;
  return d;
}

std::string depthwise_refusal(const ConvPlan& c) {
  if (!(c.pixels[0].extent == Dim(1)) || is_padded(c.pixels[0])) return "the image has three axes of pixels";
  if (const auto filters = c.rows.extent.constant(); filters && *filters > kMostFilters)
    return str_cat(*filters, " filters read each channel; more than ", kMostFilters, " are a matrix product");
  int sum_of[kSpatial];
  if (!find_windows(c, sum_of)) return "a window is not in one channel, or its extent is symbolic";
  return "a size other than those of the outer axes is symbolic, or a row is too long";
}

bool is_depthwise_nhwc(const ConvPlan& c) { return c.channels_last && !(c.rows.image == Dim(0)); }

std::optional<Depthwise> depthwise_nhwc_shape(const ConvPlan& c) {
  Depthwise d;
  const auto channels = c.rows.extent.constant(), batch = c.pixels[0].image.constant();
  if (!is_depthwise_nhwc(c) || !c.outer.empty() || is_padded(c.pixels[0]) || !channels || *channels < 1 || !batch ||
      !(c.rows.image == Dim(1)) || !(c.rows.out == Dim(1)))
    return std::nullopt;
  d.filters = *channels;
  return find_axes(c, d) ? std::optional(d) : std::nullopt;
}

std::shared_ptr<HostKernel> depthwise_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Target& target, const Blocking& blocking) {
  return std::make_shared<DepthwiseKernel>(c, *depthwise_shape(c), std::move(epilogue), target, blocking);
}

}  // namespace lc::backends::cpu
