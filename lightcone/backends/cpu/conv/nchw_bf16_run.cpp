// Runs a convolution in bf16: rounds the image to planes, gathers windows into panels, and multiplies panels.
#include <algorithm>

#include "lightcone/backends/cpu/conv/nchw_bf16.h"
#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
using Word = std::uint32_t;  // a bf16 pair
constexpr i64 kLanes = 16;
constexpr i64 kBlock = kTileDepth / 2;  // pairs packed at a time

// A run. The pixels of some images, concatenated, are the columns of one product.
struct Job {
  const NchwBf16* p;
  const NchwBf16Table* t;
  const ConvRun* run;
  Blocking blocking;
  const std::byte* weights = nullptr;
  i64 columns = 0;
  i64 tiles_task = 1, strips_task = 1, across = 1, along = 1;  // per task; tasks per group
};

// Maximum columns of a task: their panel stays in L2. Tasks have more columns if there are few pairs.
i64 most_columns(const NchwBf16& p, const Blocking& b) {
  const i64 depth = std::min(p.depth(), kTileDepth), nr = p.unit->nr,
            columns = std::max(nr, b.l2_budget_floats() / kBlock);
  return p.planes ? round_up(columns, nr) : round_up(std::min(8 * columns, columns * kTileDepth / depth), nr);
}
i64 panel_bytes(const NchwBf16& p, const Blocking& b) {
  return most_columns(p, b) / kLanes * p.unit->b_bytes(std::min(p.depth(), kTileDepth));
}
// Rows of the planes that `rows` output rows read.
i64 plane_rows(const NchwBf16& p, i64 rows) { return rows + p.y.length - p.y.extent; }
i64 plane_words(i64 words) { return round_up(words, 16) | 16; }  // stride of an odd number of cache lines
i64 planes_bytes(const NchwBf16& p, const Blocking& b) {
  if (!p.planes) return 0;
  const i64 columns = most_columns(p, b), images = columns / p.pixels + 2;
  const i64 rows = columns / p.x.extent + images * plane_rows(p, 2), taps = static_cast<i64>(p.shift.size());
  return round_up(plane_words(rows * p.row_words) * (kBlock / taps + 2) * 4, 64);
}

i64 worker_bytes(const NchwBf16& p, const Blocking& b) { return panel_bytes(p, b) + planes_bytes(p, b); }

// Divides columns [begin, end) by image: f(image, first pixel, count, column).
template <class F>
void for_images(const NchwBf16& p, i64 begin, i64 end, const F& f) {
  for (i64 c = begin; c < end;) {
    const i64 pixel = c % p.pixels, n = std::min(end - c, p.pixels - pixel);
    f(c / p.pixels, pixel, n, c);
    c += n;
  }
}

// Divides pixels of an image by row: f(y, x, count).
template <class F>
void for_rows(const NchwBf16& p, i64 pixel, i64 n, const F& f) {
  for (i64 y = pixel / p.x.extent, x = pixel % p.x.extent; n > 0; ++y, x = 0) {
    const i64 some = std::min(n, p.x.extent - x);
    f(y, x, some);
    n -= some;
  }
}

// ---- planes ------------------------------------------------------------------------------------

// Makes rows [first, first + rows) of the planes of some pairs of channels, `plane` words apart.
void make_planes(const Job& j, const float* image, i64 pair, i64 pairs, i64 first, i64 rows, Word* to, i64 plane) {
  const NchwBf16& p = *j.p;
  const auto steps = [&p](i64 d) { return d <= 0 ? 0 : ceil_div(d, p.x.step); };
  for (i64 y = first * p.y.step; y < (first + rows) * p.y.step; ++y) {
    if (y % p.y.step >= p.y.phases) continue;  // no window reads this row
    for (i64 px = 0; px < p.x.phases; ++px, to += p.x.length) {
      const bool inside = y >= p.y.lo && y < p.y.hi;
      const i64 end = inside ? std::min(p.x.length, steps(p.x.hi - px)) : 0, begin = std::min(end, steps(p.x.lo - px));
      for (i64 i = 0; i < pairs; ++i) {
        for (i64 x = 0; x < begin; ++x) to[i * plane + x] = 0;
        for (i64 x = end; x < p.x.length; ++x) to[i * plane + x] = 0;
      }
      const i64 from = y * p.y.unit + (px + begin * p.x.step) * p.x.unit, step = p.x.step * p.x.unit;
      j.t->round(image + from, p.channels.data() + 2 * pair, pairs, step, end - begin, to + begin, plane, 0, kLanes);
    }
  }
}

// ---- panels ------------------------------------------------------------------------------------

// A panel: columns [begin, end) of a task and pairs [k, k + count). Its groups of 16 columns are `step` words apart.
struct Panel {
  i64 group, begin, end = 0, k = 0, count = 0;
  Word* to = nullptr;
  i64 step = 0;
};

void from_image(const Job& j, const Panel& to) {
  const NchwBf16& p = *j.p;
  for_images(p, to.begin, to.end, [&](i64 image, i64 pixel, i64 n, i64 c) {
    const float* from = j.run->problem(to.group, image).image;
    for_rows(p, pixel, n, [&](i64 y, i64 x, i64 some) {
      j.t->round(from + y * p.y.unit + x * p.x.unit, p.channels.data() + 2 * to.k, to.count, p.x.unit, some, to.to,
                 kLanes, c - to.begin, to.step);
      c += some;
    });
  });
}

void from_planes(const Job& j, const Panel& to, Word* planes) {
  const NchwBf16& p = *j.p;
  const i64 taps = static_cast<i64>(p.shift.size()), first = to.k / taps, last = (to.k + to.count - 1) / taps;
  const auto rows = [&](i64 pixel, i64 n) {
    return plane_rows(p, (pixel + n - 1) / p.x.extent - pixel / p.x.extent + 1);
  };
  i64 words = 0, at[kBlock];
  for_images(p, to.begin, to.end, [&](i64, i64 pixel, i64 n, i64) { words += rows(pixel, n) * p.row_words; });
  const i64 plane = plane_words(words);
  for (i64 i = 0; i < to.count; ++i) at[i] = ((to.k + i) / taps - first) * plane + p.shift[(to.k + i) % taps];
  for_images(p, to.begin, to.end, [&](i64 image, i64 pixel, i64 n, i64 c) {
    const float* from = j.run->problem(to.group, image).image;
    const i64 top = pixel / p.x.extent;
    make_planes(j, from, first, last - first + 1, top, rows(pixel, n), planes, plane);
    for_rows(p, pixel, n, [&](i64 y, i64 x, i64 some) {
      for (i64 m = 0; some > 0; some -= m, c += m, x += m) {
        const i64 column = c - to.begin, lane = column % kLanes;
        m = std::min(kLanes - lane, some);
        j.t->gather(planes + (y - top) * p.row_words + x, at, to.count, m, to.to + column / kLanes * to.step + lane);
      }
    });
    planes += rows(pixel, n) * p.row_words;
  });
}

// ---- tiles -------------------------------------------------------------------------------------

// Some rows of C for some columns of a panel.
struct Tile {
  i64 row, rows, column, columns;
  const std::byte* a;
  const Word* b;
};
// Computes a tile directly in the output if it is contiguous there, else in a local block.
void compute(const Job& j, const Panel& panel, const Tile& t) {
  const NchwBf16& p = *j.p;
  const Microkernel& u = *p.unit;
  const i64 depth = 2 * panel.count, pixel = t.column % p.pixels;
  const void* soon = u.together > 0 ? nullptr : t.a;  // tile registers need no address
  const auto place = [&](i64 image) { return j.run->problem(panel.group, image).out + t.row * p.out_row; };
  if (t.columns == u.nr && pixel + t.columns <= p.pixels)
    return u.tile(t.a, t.b, 4 * panel.step, depth, place(t.column / p.pixels) + pixel, p.out_row, t.rows, t.columns,
                  panel.k > 0, soon);
  constexpr i64 kMost = 32;  // maximum rows and columns of a tile
  alignas(64) float block[kMost * kMost];
  const auto each = [&](const auto& f) {
    for_images(p, t.column, t.column + t.columns,
               [&](i64 image, i64 from, i64 n, i64 c) { f(place(image) + from, block + c - t.column, n); });
  };
  if (panel.k > 0) each([&](float* out, float* sums, i64 n) { j.t->move(out, p.out_row, t.rows, n, sums, u.nr); });
  u.tile(t.a, t.b, 4 * panel.step, depth, block, u.nr, t.rows, u.nr, panel.k > 0, soon);
  each([&](float* out, float* sums, i64 n) { j.t->move(sums, u.nr, t.rows, n, out, p.out_row); });
}

void finish(const Job& j, const Panel& panel, i64 row, i64 rows) {
  for_images(*j.p, panel.begin, panel.end, [&](i64 image, i64 pixel, i64 n, i64) {
    j.run->finish(j.run->problem(panel.group, image), row, rows, pixel, pixel + n);
  });
}

void some_tiles(void* arg, int task, int worker) {
  const Job& j = *static_cast<const Job*>(arg);
  const NchwBf16& p = *j.p;
  const Microkernel& u = *p.unit;
  const i64 row = task % j.across * j.strips_task * u.mr, end = std::min(row + j.strips_task * u.mr, p.rows);
  const i64 column = task / j.across % j.along * j.tiles_task * u.nr, pairs = p.depth() / 2;
  std::byte* scratch = j.run->launch->scratch + worker * worker_bytes(p, j.blocking);
  Panel panel{.group = task / j.across / j.along, .begin = column};
  panel.end = std::min(j.columns, column + j.tiles_task * u.nr), panel.to = reinterpret_cast<Word*>(scratch);
  const std::byte* weights = j.weights + panel.group * p.group_bytes();
  if (u.begin) u.begin();
  for (panel.k = 0; panel.k < pairs; panel.k += kBlock) {
    panel.count = std::min(kBlock, pairs - panel.k), panel.step = u.b_bytes(2 * panel.count) / 4;
    if (p.planes) from_planes(j, panel, reinterpret_cast<Word*>(scratch + panel_bytes(p, j.blocking)));
    else from_image(j, panel);
    for (i64 c = 0; c < panel.end - column; c += kLanes)  // pad the last step
      std::fill(panel.to + c / kLanes * panel.step + panel.count * kLanes, panel.to + (c / kLanes + 1) * panel.step, 0);
    for (i64 r = row; r < end; r += u.mr) {
      const i64 rows = std::min<i64>(u.mr, end - r);
      const std::byte* a = weights + r / u.mr * u.a_bytes(p.depth()) + u.a_bytes(2 * panel.k);
      for (i64 c = column; c < panel.end; c += u.nr)
        compute(j, panel,
                {r, rows, c, std::min<i64>(u.nr, panel.end - c), a, panel.to + (c - column) / kLanes * panel.step});
      if (panel.k + panel.count == pairs) finish(j, panel, r, rows);  // while the rows are in the cache
    }
  }
  if (u.end) u.end();
}

// Chooses the tiles and strips per task that take the least time, in vector products per pair of k.
void split(Job& j, int workers) {
  const NchwBf16& p = *j.p;
  const Microkernel& u = *p.unit;
  const i64 tile = u.mr * u.nr / kLanes, pack = (p.planes ? 12 : 20) * u.nr / 32, weights = 6;
  const i64 tiles = ceil_div(j.columns, u.nr), strips = ceil_div(p.rows, u.mr);
  i64 least = 0;
  for (i64 n = std::min(tiles, most_columns(p, j.blocking) / u.nr); n > 0; --n)
    for (i64 pieces = 1; pieces <= std::min<i64>(strips, 2 * workers); ++pieces) {
      const i64 height = ceil_div(strips, pieces), across = ceil_div(strips, height), along = ceil_div(tiles, n);
      const i64 all = ceil_div(p.groups * along * across, workers) * (height * (n * tile + weights) + n * pack + tile);
      if (least > 0 && all >= least) continue;
      least = all, j.tiles_task = n, j.strips_task = height, j.across = across, j.along = along;
    }
}

// All sizes are known, except where the image begins and the extents of outer axes.
template <class T>
struct NchwBf16Sizes {
  T image_offset = 0;
  std::array<T, ConvRun::kOuter> extents = {};
  std::size_t axes = 0;
  template <class F>
  void each(const F& f) {
    f(image_offset);
    for (std::size_t i = 0; i < axes; ++i) f(extents[i]);
  }
};

NchwBf16Sizes<Dim> nchw_bf16_sizes(const ConvPlan& c) {
  NchwBf16Sizes<Dim> s{.image_offset = c.image_offset};
  for (const ConvPlan::Axis& a : c.outer) s.extents[s.axes++] = a.extent;
  return s;
}

class NchwBf16Kernel final : public ConvKernel {
 public:
  NchwBf16Kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue, const Blocking& blocking)
      : ConvKernel(nchw_bf16_sizes(c), std::move(epilogue)), p_(c.nchw_bf16), outer_(c.outer), blocking_(blocking) {
    const Microkernel* u = p_->unit;
    const bool fast = u == &kBf16Avx512Bf16 || u == &kDenseAmx[static_cast<int>(Arithmetic::Bf16)];
    table_ = fast ? &kNchwBf16Avx512Bf16 : &kNchwBf16Generic;
    i64 depth = 0;
    for (const i64 w : p_->weights) depth += w != kNoChannel;
    Dim flops = 2 * depth * p_->rows * p_->pixels;
    for (const ConvPlan::Axis& a : outer_) flops = flops * a.extent;
    set_figures("conv_" + std::string(u->name), flops);
    set_scratch(0, worker_bytes(*p_, blocking_));
  }
  void run(const HostLaunch& l) const override;

 private:
  std::shared_ptr<const NchwBf16> p_;
  std::vector<ConvPlan::Axis> outer_;
  Blocking blocking_;
  const NchwBf16Table* table_;
};

void NchwBf16Kernel::run(const HostLaunch& l) const {
  const NchwBf16& p = *p_;
  NchwBf16Sizes<i64> s{.axes = outer_.size()};
  read_sizes(l.sizes.data(), s);
  ConvRun r;
  r.launch = &l, r.epilogue = epilogue(), r.epilogue_sizes = epilogue_sizes(l);
  r.base.image = static_cast<const float*>(l.in[0]) + s.image_offset, r.base.out = static_cast<float*>(l.out);
  r.base.rows = p.rows, r.base.out_row = p.out_row, r.base.pixels = p.pixels;
  for (std::size_t i = 0; i < outer_.size(); ++i) {
    const ConvPlan::Axis& a = outer_[i];
    r.outer[r.axes++] = {s.extents[i], *a.image.constant(), *a.weight.constant(), *a.out.constant()};
    r.count *= s.extents[i];
  }
  if (r.count <= 0) return;
  Job j{.p = &p, .t = table_, .run = &r, .blocking = blocking_, .weights = static_cast<const std::byte*>(l.in[1])};
  j.columns = r.images() * p.pixels;
  split(j, l.parallel.workers());
  l.parallel.run(static_cast<int>(p.groups * j.along * j.across), some_tiles, &j);
}

}  // namespace

std::shared_ptr<HostKernel> nchw_bf16_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Blocking& blocking) {
  return std::make_shared<NchwBf16Kernel>(c, std::move(epilogue), blocking);
}

}  // namespace lc::backends::cpu
