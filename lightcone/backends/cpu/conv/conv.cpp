#include "lightcone/backends/cpu/conv/conv.h"

#include <algorithm>

#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/filter_gradient.h"
#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/loops/epilogue.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {

using i64 = std::int64_t;

namespace {

constexpr i64 kNarrowest = 8;          // smallest nr of any instruction set
constexpr i64 kMostTaskPixels = 1024;  // pixels per task, whatever the cache sizes
constexpr i64 kPackStrip = 12;         // cycles per tap for packing a strip of pixels
constexpr i64 kTaskCost = 20;          // overhead of a task, in cycles per tap

// A run of the direct algorithm. Products with the same weights are adjacent: `images` products for each group.
struct DirectJob {
  const ConvRun* run;
  float* scratch;
  i64 images, strips;     // images per group; strips per image
  i64 strips_task, rows;  // strips and rows per task
};

void direct_task(void* arg, int task, int worker) {
  const DirectJob& j = *static_cast<const DirectJob*>(arg);
  const ConvProblem& b = j.run->base;
  const i64 nr = j.run->t->nr, across = ceil_div(b.rows, j.rows), along = ceil_div(j.images * j.strips, j.strips_task);
  const i64 row = task % across * j.rows, group = task / across / along;
  i64 strip = task / across % along * j.strips_task;
  const i64 end = std::min(j.images * j.strips, strip + j.strips_task);
  Span spans[kMostTaskPixels / kNarrowest];
  std::size_t count = 0;
  while (strip < end) {
    const i64 image = strip / j.strips, first = strip % j.strips, n = std::min(end - strip, j.strips - first);
    spans[count++] = {j.run->problem(group, image), first * nr, std::min(b.pixels, (first + n) * nr)};
    strip += n;
  }
  direct_part(*j.run, spans, count, row, std::min(j.rows, b.rows - row), j.scratch + worker * direct_floats(*j.run));
}

// Chooses the strips and rows per task that take the least time, in cycles of a core that multiplies two vectors per
// cycle. A task packs its image, and its weights unless they were packed at load time; the model rounds up to whole
// waves of tasks.
void split(DirectJob& j, int workers) {
  const ConvProblem& b = j.run->base;
  const i64 mr = j.run->t->mr, panels = ceil_div(b.rows, mr), strips = j.images * j.strips, groups = j.run->groups();
  const i64 most = std::min(strips, direct_pixels(j.run->blocking) / j.run->t->nr);
  i64 least = 0;
  for (i64 n = most; n > 0; --n)
    for (i64 pieces = 1; pieces <= std::min<i64>(panels, 2 * workers); ++pieces) {
      const i64 tasks = groups * ceil_div(strips, n) * pieces, height = ceil_div(panels, pieces);
      const i64 cost = height * (n * mr + (b.packed ? 1 : 8)) + n * kPackStrip + kTaskCost;
      const i64 all = ceil_div(tasks, workers) * cost;
      if (least > 0 && all >= least) continue;
      least = all, j.strips_task = n, j.rows = height * mr;
    }
}

void direct(const ConvRun& run, float* scratch) {
  const ConvProblem& b = run.base;
  DirectJob j{&run, scratch, run.images(), ceil_div(b.pixels, run.t->nr), 1, b.rows};
  split(j, run.launch->parallel.workers());
  const i64 tasks = run.groups() * ceil_div(j.images * j.strips, j.strips_task) * ceil_div(b.rows, j.rows);
  run.launch->parallel.run(static_cast<int>(tasks), direct_task, &j);
}

}  // namespace

const ConvTable& conv_table(Isa isa) {
  switch (isa) {
    case Isa::Avx512: return kConvAvx512;
    case Isa::Avx2: return kConvAvx2;
    case Isa::Neon: return kConvNeon;
    default: return kConvGeneric;
  }
}

i64 depth_step(i64 depth) { return ceil_div(depth, std::max<i64>(1, ceil_div(depth, kDepth))); }

i64 direct_pixels(const Blocking& b) {
  return std::clamp<i64>(b.l2_budget_floats() * 5 / 4 / kDepth / 32 * 32, 64, kMostTaskPixels);
}
i64 direct_floats(const ConvRun& run) { return kDepth * (direct_pixels(run.blocking) + run.t->mr) + 16; }

void direct_part(const ConvRun& run, const Span* spans, std::size_t count, i64 row, i64 rows, float* scratch) {
  const ConvTable& t = *run.t;
  const ConvProblem& base = run.base;
  float *image = scratch, *weights = scratch + kDepth * direct_pixels(run.blocking);
  const i64 step = depth_step(base.depth);
  for (i64 k = 0; k < base.depth; k += step) {
    const i64 depth = std::min(step, base.depth - k);
    float* to = image;
    for (const Span* s = spans; s != spans + count; ++s) {
      t.pack_image(s->p, s->begin, s->end - s->begin, k, depth, to);
      to += round_up(s->end - s->begin, t.nr) * depth;
    }
    for (i64 r = row; r < row + rows; r += t.mr) {
      const i64 height = std::min<i64>(t.mr, row + rows - r);
      const float* panel = weights;
      if (spans->p.packed) panel = spans->p.packed + r * base.depth + k * t.mr;
      else t.pack_weights(spans->p, r, height, k, depth, weights);
      const float* from = image;
      for (const Span* s = spans; s != spans + count; ++s)
        for (i64 c = s->begin; c < s->end; c += t.nr, from += t.nr * depth)
          t.tile(panel, from, depth, s->p.out + r * base.out_row + c, base.out_row, height,
                 std::min<i64>(t.nr, s->end - c), k > 0);
      for (const Span* s = spans; s != spans + count && k + depth == base.depth; ++s)  // while the rows are in L1
        run.finish(s->p, r, height, s->begin, s->end);
    }
  }
  for (const Span* s = spans; s != spans + count && base.depth == 0; ++s) {
    for (i64 r = row; r < row + rows; ++r)
      std::fill(s->p.out + r * base.out_row + s->begin, s->p.out + r * base.out_row + s->end, 0.0f);
    run.finish(s->p, row, rows, s->begin, s->end);
  }
}

ConvProblem ConvRun::problem(i64 group, i64 image) const {
  ConvProblem p = base;
  if (p.packed) p.packed += group * packed_group;
  for (int i = axes; i-- > 0;) {
    const Axis& a = outer[i];
    i64& index = a.weight ? group : image;
    const i64 at = index % a.extent;
    index /= a.extent;
    p.image += at * a.image, p.weight += at * a.weight, p.out += at * a.out;
  }
  return p;
}

i64 ConvRun::images() const {
  i64 n = 1;
  for (int i = 0; i < axes; ++i) n *= outer[i].weight ? 1 : outer[i].extent;
  return n;
}

i64 ConvRun::groups() const { return count / images(); }

void ConvRun::finish(const ConvProblem& p, i64 row, i64 rows, i64 begin, i64 end) const {
  if (!epilogue) return;
  float* out = static_cast<float*>(launch->out);
  const i64 together = p.out_row == p.pixels ? rows : 1;
  for (i64 r = row; r < row + rows; r += together)
    epilogue->run(launch->in.data() + 2, out, epilogue_sizes, (p.out + r * p.out_row - out) / p.pixels, together, begin,
                  end);
}

namespace {

class ConvolutionKernel final : public HostKernel {
 public:
  ConvolutionKernel(const ConvPlan& c, ConvAlgorithm way, std::shared_ptr<const Epilogue> epilogue,
                    const Target& target, const Blocking& blocking)
      : c_(c),
        epilogue_(std::move(epilogue)),
        table_(&conv_table(target.isa)),
        blocking_(blocking),
        way_(winograd_fits(c) ? way : ConvAlgorithm::Direct) {
    const auto add = [&](const Dim& d) { sizes_.push_back(d); };
    add(c.image_offset), add(c.weight_offset);
    for (const auto* a : {&c.rows}) add(a->extent), add(a->weight), add(a->out);
    for (const auto& p : c.pixels) add(p.extent), add(p.image), add(p.lo), add(p.hi);
    for (const auto& s : c.sums) add(s.extent), add(s.image), add(s.weight);
    for (const auto& a : c.outer) add(a.extent), add(a.image), add(a.weight), add(a.out);
    if (epilogue_)
      for (const Dim& d : epilogue_->sizes()) add(d);
    std::vector<i64> largest;
    for (const Dim& d : sizes_) largest.push_back(d.bounds().hi);
    largest_ = numbers(largest.data());
    slides_ = slide_floats(largest_, 1) > 0;
    taps_ = round_up(std::max<i64>(largest_.base.depth, 1) * static_cast<i64>(sizeof(Tap)), 64);
  }
  std::string name() const override {
    const std::string way = by_winograd(largest_) ? "conv_winograd" : "conv";
    return epilogue_ ? way + "+" + epilogue_->loop()->name() : way;
  }
  std::vector<Dim> sizes() const override { return sizes_; }
  Dim scratch_bytes(int workers) const override {
    const i64 direct = std::max(workers * direct_floats(largest_), slide_floats(largest_, workers));
    const bool maybe = way_ != ConvAlgorithm::Direct;
    const i64 floats = maybe ? std::max(direct, winograd_floats(largest_, workers)) : direct;
    return taps_ + floats * 4;
  }
  std::string source() const override { return epilogue_ ? epilogue_->loop()->source() : std::string(); }
  Dim flops() const override {
    Dim f = c_.rows.extent * 2;
    for (const auto& p : c_.pixels) f = f * p.extent;
    for (const auto& s : c_.sums) f = f * s.extent;
    for (const auto& a : c_.outer) f = f * a.extent;
    return f;
  }
  void run(const HostLaunch& l) const override;

 private:
  ConvRun numbers(const i64* sizes) const;
  bool by_winograd(const ConvRun& r) const {
    return way_ == ConvAlgorithm::Winograd || (way_ == ConvAlgorithm::Cheapest && winograd_pays(r));
  }
  void fill_taps(const i64* sizes, Tap* taps, ConvProblem& p) const;

  ConvPlan c_;
  std::shared_ptr<const Epilogue> epilogue_;
  const ConvTable* table_;
  Blocking blocking_;
  ConvAlgorithm way_;
  std::vector<Dim> sizes_;
  ConvRun largest_;
  bool slides_;  // the scratch has room for slide()
  i64 taps_;     // bytes of the array of taps
};

constexpr std::size_t kHead = 5, kPixelSizes = 4, kSumSizes = 3, kAxisSizes = 4;

ConvRun ConvolutionKernel::numbers(const i64* s) const {
  ConvRun r;
  r.shape = &c_, r.t = table_, r.blocking = blocking_, r.epilogue = epilogue_.get();
  ConvProblem& p = r.base;
  p.rows = s[2], p.weight_row = s[3], p.out_row = s[4];
  s += kHead;
  for (int j = 0; j < kSpatial; ++j, s += kPixelSizes) {
    p.extent[j] = s[0], p.image_step[j] = s[1], p.lo[j] = s[2], p.hi[j] = s[3];
    p.step[j] = c_.pixels[j].step;
    p.pixels *= s[0];
  }
  p.depth = 1;
  for (std::size_t i = 0; i < c_.sums.size(); ++i, s += kSumSizes) {
    r.sum_extent[i] = s[0], r.sum_image[i] = s[1];
    p.depth *= s[0];
  }
  for (std::size_t i = 0; i < c_.outer.size(); ++i, s += kAxisSizes) {
    r.outer[r.axes++] = {s[0], s[1], s[2], s[3]};
    r.count *= s[0];
  }
  r.epilogue_sizes = s;
  return r;
}

void ConvolutionKernel::fill_taps(const i64* sizes, Tap* taps, ConvProblem& p) const {
  const i64* s = sizes + kHead + kSpatial * kPixelSizes;
  const std::size_t n = c_.sums.size();
  i64 index[16] = {};
  p.neighbours = true;
  for (i64 k = 0; k < p.depth; ++k) {
    Tap t = {};
    for (std::size_t i = 0; i < n; ++i) {
      t.image += index[i] * s[kSumSizes * i + 1], t.weight += index[i] * s[kSumSizes * i + 2];
      for (int j = 0; j < kSpatial; ++j) t.shift[j] += index[i] * c_.sums[i].dilation[j];
    }
    taps[k] = t;
    p.neighbours = p.neighbours && t.weight == taps[0].weight + k;
    for (std::size_t i = n; i-- > 0 && ++index[i] == s[kSumSizes * i];) index[i] = 0;
  }
  p.taps = taps;
}

// Merges rows of pixels that are contiguous in the image and need no padding into one row.
void join_pixels(ConvProblem& p) {
  const auto free = [&](int j) { return p.step[j] == 0 && p.lo[j] <= -ConvPlan::kFar && p.hi[j] >= ConvPlan::kFar; };
  for (int j = kSpatial - 1; j-- > 0;) {
    if (!free(2) || !free(j) || (p.extent[j] > 1 && p.image_step[j] != p.image_step[2] * p.extent[2])) return;
    p.extent[2] *= p.extent[j], p.extent[j] = 1;
  }
}

void ConvolutionKernel::run(const HostLaunch& l) const {
  const i64* s = l.sizes.data();
  ConvRun r = numbers(s);
  if (r.count <= 0 || r.base.rows <= 0 || r.base.pixels <= 0) return;
  r.launch = &l;
  r.base.image = static_cast<const float*>(l.in[0]) + s[0];
  r.base.weight = static_cast<const float*>(l.in[1]) + s[1];
  r.base.out = static_cast<float*>(l.out);
  if (c_.packed) {
    r.base.packed = static_cast<const float*>(l.in[1]);
    r.packed_group = round_up(r.base.rows, table_->mr) * r.base.depth;
  }
  fill_taps(s, reinterpret_cast<Tap*>(l.scratch), r.base);
  auto* floats = reinterpret_cast<float*>(l.scratch + taps_);
  if (by_winograd(r)) return winograd(r, floats);
  join_pixels(r.base);
  if (slides_ && slide_pays(r)) return slide(r, floats);
  direct(r, floats);
}

}  // namespace

std::optional<lowering::Convolution> find_convolution(const Graph& g, const lowering::Factors& f,
                                                      const Target& target) {
  auto c = match_convolution(g, f);
  if (!c) return c;
  const ConvPlan plan{*c};
  if (!c->channels_last) return like_filter_gradient(g, *c) && !filter_gradient_shape(plan) ? std::nullopt : c;
  const bool packs = (is_depthwise_nhwc(plan) || nhwc_shape(plan)) && packed_filters(g, plan, target).has_value();
  return packs || filter_gradient_shape(plan) ? c : std::nullopt;
}

std::shared_ptr<HostKernel> convolution_kernel(const ConvPlan& c, ConvAlgorithm way,
                                               std::shared_ptr<const Epilogue> epilogue, const Target& target,
                                               const Blocking& blocking) {
  if (depthwise_shape(c)) return depthwise_kernel(c, std::move(epilogue), target, blocking);
  return std::make_shared<ConvolutionKernel>(c, way, std::move(epilogue), target, blocking);
}

}  // namespace lc::backends::cpu
