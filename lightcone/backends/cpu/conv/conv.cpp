#include "lightcone/backends/cpu/conv/conv.h"

#include <algorithm>

#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
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

void direct(const ConvRun& separate, float* scratch) {
  ConvRun run = separate;
  join_pixels(run.base);
  const ConvProblem& b = run.base;
  DirectJob j{&run, scratch, run.images(), ceil_div(b.pixels, run.t->nr), 1, b.rows};
  split(j, run.launch->parallel.workers());
  const i64 tasks = run.groups() * ceil_div(j.images * j.strips, j.strips_task) * ceil_div(b.rows, j.rows);
  run.launch->parallel.run(static_cast<int>(tasks), direct_task, &j);
}

const char* direct_refuses(const ConvRun&) { return nullptr; }

}  // namespace

const ConvInRun kDirect = {direct_refuses, direct_cost, direct};

double direct_cost(const ConvRun& run) {
  const ConvProblem& p = run.base;
  const auto d = [](i64 v) { return static_cast<double>(v); };
  return 0.9 * (d(p.depth) * d(p.rows) * d(round_up(p.pixels, run.t->lanes)) * d(run.images()) / (2 * run.t->lanes));
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
      t.pack_image(&s->p, s->begin, s->end - s->begin, k, depth, to);
      to += round_up(s->end - s->begin, t.nr) * depth;
    }
    for (i64 r = row; r < row + rows; r += t.mr) {
      const i64 height = std::min<i64>(t.mr, row + rows - r);
      const float* panel = weights;
      if (spans->p.packed) panel = spans->p.packed + r * base.depth + k * t.mr;
      else t.pack_weights(&spans->p, r, height, k, depth, weights);
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

template <class T>
struct ConvSizes {
  struct Pixel {
    T extent = 0, image = 0, lo = 0, hi = 0;
  };
  struct Sum {
    T extent = 0, image = 0, weight = 0;
  };
  T image_offset = 0, weight_offset = 0, rows = 0, weight_row = 0, out_row = 0;
  std::array<Pixel, kSpatial> pixels = {};
  std::array<Sum, ConvRun::kOuter> sums = {};
  std::array<AxisSizes<T>, ConvRun::kOuter> outer = {};
  std::size_t sum_count = 0, outer_count = 0;
  template <class F>
  void each(const F& f) {
    for (T* t : {&image_offset, &weight_offset, &rows, &weight_row, &out_row}) f(*t);
    for (Pixel& p : pixels) f(p.extent), f(p.image), f(p.lo), f(p.hi);
    for (std::size_t i = 0; i < sum_count; ++i) f(sums[i].extent), f(sums[i].image), f(sums[i].weight);
    for (std::size_t i = 0; i < outer_count; ++i) outer[i].each(f);
  }
};

ConvSizes<Dim> conv_sizes(const ConvPlan& c) {
  ConvSizes<Dim> s{.image_offset = c.image_offset,
                   .weight_offset = c.weight_offset,
                   .rows = c.rows.extent,
                   .weight_row = c.rows.weight,
                   .out_row = c.rows.out};
  for (std::size_t j = 0; j < kSpatial; ++j) {
    const ConvPlan::Pixel& p = c.pixels[j];
    s.pixels[j] = {p.extent, p.image, p.lo, p.hi};
  }
  for (const ConvPlan::Sum& a : c.sums) s.sums[s.sum_count++] = {a.extent, a.image, a.weight};
  for (const ConvPlan::Axis& a : c.outer) s.outer[s.outer_count++] = {a.extent, a.image, a.weight, a.out};
  return s;
}

// A run with these sizes, without operands.
ConvRun sized_run(const ConvPlan& c, const ConvSizes<i64>& s, UseWinograd winograd, const ConvTable& table,
                  const Blocking& blocking) {
  ConvRun r;
  r.shape = &c, r.winograd = winograd, r.packed_filters = c.packed, r.t = &table, r.blocking = blocking;
  ConvProblem& p = r.base;
  p.rows = s.rows, p.weight_row = s.weight_row, p.out_row = s.out_row;
  for (std::size_t j = 0; j < kSpatial; ++j) {
    const ConvSizes<i64>::Pixel& a = s.pixels[j];
    p.extent[j] = a.extent, p.image_step[j] = a.image, p.lo[j] = a.lo, p.hi[j] = a.hi;
    p.step[j] = c.pixels[j].step;
    p.pixels *= a.extent;
  }
  p.depth = 1;
  for (std::size_t i = 0; i < s.sum_count; ++i) {
    r.sum_extent[i] = s.sums[i].extent, r.sum_image[i] = s.sums[i].image;
    p.depth *= s.sums[i].extent;
  }
  for (std::size_t i = 0; i < s.outer_count; ++i) {
    const AxisSizes<i64>& a = s.outer[i];
    r.outer[r.axes++] = {a.extent, a.image, a.weight, a.out};
    r.count *= a.extent;
  }
  return r;
}

ConvSizes<i64> no_sizes(const ConvPlan& c) { return {.sum_count = c.sums.size(), .outer_count = c.outer.size()}; }

class NchwKernel final : public ConvKernel {
 public:
  NchwKernel(const ConvPlan& c, UseWinograd winograd, std::shared_ptr<const Epilogue> epilogue, const Target& target,
             const Blocking& blocking)
      : ConvKernel(conv_sizes(c), std::move(epilogue)),
        c_(c),
        winograd_(winograd_refusal(c) ? UseWinograd::Never : winograd),
        table_(kernel_tables(target.isa).conv),
        blocking_(blocking),
        largest_(largest_run(c_, winograd_, target, blocking)),
        taps_(round_up(std::max<i64>(largest_.base.depth, 1) * static_cast<i64>(sizeof(Tap)), 64)) {
    largest_.packed_filters = false;  // the name is that of filters that are not packed
    Dim flops = c.rows.extent * 2;
    for (const ConvPlan::Pixel& p : c.pixels) flops = flops * p.extent;
    for (const ConvPlan::Sum& s : c.sums) flops = flops * s.extent;
    for (const ConvPlan::Axis& a : c.outer) flops = flops * a.extent;
    set_figures(&choose_in_run(largest_) == &kWinograd ? "conv_winograd" : "conv", flops);
  }
  Dim scratch_bytes(int workers) const override {
    i64 floats = std::max(workers * direct_floats(largest_), slide_floats(largest_, workers));
    if (winograd_ != UseWinograd::Never) floats = std::max(floats, winograd_floats(largest_, workers));
    return taps_ + floats * 4;
  }
  void run(const HostLaunch& l) const override;

 private:
  void fill_taps(const ConvSizes<i64>& sizes, Tap* taps, ConvProblem& p) const;

  ConvPlan c_;
  UseWinograd winograd_;
  const ConvTable* table_;
  Blocking blocking_;
  ConvRun largest_;
  i64 taps_;  // bytes of the array of taps
};

void NchwKernel::fill_taps(const ConvSizes<i64>& s, Tap* taps, ConvProblem& p) const {
  i64 index[ConvRun::kOuter] = {};
  p.neighbours = true;
  for (i64 k = 0; k < p.depth; ++k) {
    Tap t = {};
    for (std::size_t i = 0; i < s.sum_count; ++i) {
      t.image += index[i] * s.sums[i].image, t.weight += index[i] * s.sums[i].weight;
      for (int j = 0; j < kSpatial; ++j) t.shift[j] += index[i] * c_.sums[i].dilation[j];
    }
    taps[k] = t;
    p.neighbours = p.neighbours && t.weight == taps[0].weight + k;
    for (std::size_t i = s.sum_count; i-- > 0 && ++index[i] == s.sums[i].extent;) index[i] = 0;
  }
  p.taps = taps;
}

void NchwKernel::run(const HostLaunch& l) const {
  ConvSizes<i64> s = no_sizes(c_);
  read_sizes(l.sizes.data(), s);
  ConvRun r = sized_run(c_, s, winograd_, *table_, blocking_);
  if (r.count <= 0 || r.base.rows <= 0 || r.base.pixels <= 0) return;
  r.room_to_slide = largest_.room_to_slide;
  r.launch = &l, r.epilogue = epilogue(), r.epilogue_sizes = epilogue_sizes(l);
  r.base.image = static_cast<const float*>(l.in[0]) + s.image_offset;
  r.base.weight = static_cast<const float*>(l.in[1]) + s.weight_offset;
  r.base.out = static_cast<float*>(l.out);
  if (c_.packed) {
    r.base.packed = static_cast<const float*>(l.in[1]);
    r.packed_group = round_up(r.base.rows, table_->mr) * r.base.depth;
  }
  fill_taps(s, reinterpret_cast<Tap*>(l.scratch), r.base);
  choose_in_run(r).compute(r, reinterpret_cast<float*>(l.scratch + taps_));
}

}  // namespace

ConvRun largest_run(const ConvPlan& c, UseWinograd winograd, const Target& target, const Blocking& blocking) {
  std::vector<i64> bounds;
  conv_sizes(c).each([&](const Dim& d) { bounds.push_back(d.bounds().hi); });
  ConvSizes<i64> s = no_sizes(c);
  read_sizes(bounds.data(), s);
  ConvRun r = sized_run(c, s, winograd, *kernel_tables(target.isa).conv, blocking);
  r.room_to_slide = slide_floats(r, 1) > 0;
  return r;
}

bool sizes_are_known(const ConvPlan& c) {
  bool known = true;
  conv_sizes(c).each([&](const Dim& d) { known = known && d.is_constant(); });
  return known;
}

void join_pixels(ConvProblem& p) {
  const auto free = [&](int j) { return p.step[j] == 0 && p.lo[j] <= -ConvPlan::kFar && p.hi[j] >= ConvPlan::kFar; };
  for (int j = kSpatial - 1; j-- > 0;) {
    if (!free(2) || !free(j) || (p.extent[j] > 1 && p.image_step[j] != p.image_step[2] * p.extent[2])) return;
    p.extent[2] *= p.extent[j], p.extent[j] = 1;
  }
}

std::shared_ptr<HostKernel> nchw_kernel(const ConvPlan& c, UseWinograd winograd,
                                        std::shared_ptr<const Epilogue> epilogue, const Target& target,
                                        const Blocking& blocking) {
  return std::make_shared<NchwKernel>(c, winograd, std::move(epilogue), target, blocking);
}

}  // namespace lc::backends::cpu
