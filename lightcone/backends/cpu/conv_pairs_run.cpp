// Running a convolution in bf16: the image to planes, windows to panels, panels by tiles.
#include <algorithm>

#include "lightcone/backends/cpu/conv_pairs.h"
#include "lightcone/backends/cpu/epilogue.h"
#include "lightcone/backends/cpu/lower.h"

namespace lc::host {
namespace {

using i64 = std::int64_t;
using Word = std::uint32_t;  // a pair
constexpr i64 kGroup = 16;
constexpr i64 kColumns = 512;           // of a task, at most: their panel stays in L2
constexpr i64 kPlanes = i64{1} << 20;   // words of planes at a time, where an image has no more
constexpr i64 kBlock = kTileDepth / 2;  // pairs packed at a time

i64 up(i64 v, i64 to) { return (v + to - 1) / to * to; }
i64 parts(i64 v, i64 of) { return (v + of - 1) / of; }

// The pixels of some images, one behind the other, are the columns of one product.
struct Job {
  const Pairs* p;
  const PairsTable* t;
  const ConvRun* run;
  const std::byte* weights = nullptr;  // of the group
  Word* planes = nullptr;
  std::byte* panels = nullptr;
  i64 panel_bytes = 0;
  i64 group = 0, first = 0, columns = 0;            // the first image
  i64 tiles_task = 1, strips_task = 1, across = 1;  // of a task; tasks that share their columns
};

i64 image_words(const Pairs& p) { return p.planes ? p.plane * static_cast<i64>(p.channels.size() / 2) : 0; }
i64 images_at_once(const Pairs& p, i64 images) {
  return p.planes ? std::clamp<i64>(kPlanes / std::max<i64>(image_words(p), 1), 1, std::max<i64>(images, 1)) : images;
}
i64 panel_bytes(const DenseUnit& u) { return up(kColumns, u.nr) / kGroup * u.b_bytes(kTileDepth); }

// Columns [begin, end) image by image: f(image, first pixel, number, column).
template <class F>
void for_images(const Pairs& p, i64 begin, i64 end, const F& f) {
  for (i64 c = begin; c < end;) {
    const i64 pixel = c % p.pixels, n = std::min(end - c, p.pixels - pixel);
    f(c / p.pixels, pixel, n, c);
    c += n;
  }
}

// Pixels of an image row by row: f(y, x, number).
template <class F>
void for_rows(const Pairs& p, i64 pixel, i64 n, const F& f) {
  for (i64 y = pixel / p.x.extent, x = pixel % p.x.extent; n > 0; ++y, x = 0) {
    const i64 some = std::min(n, p.x.extent - x);
    f(y, x, some);
    n -= some;
  }
}

// ---- planes ------------------------------------------------------------------------------------

void make_plane(const Job& j, const float* image, i64 pair, Word* to) {
  const Pairs& p = *j.p;
  const auto steps = [&p](i64 d) { return d <= 0 ? 0 : parts(d, p.x.step); };
  for (i64 py = 0; py < p.y.phases; ++py)
    for (i64 px = 0; px < p.x.phases; ++px)
      for (i64 q = 0; q < p.y.length; ++q, to += p.x.length) {
        const i64 y = q * p.y.step + py;
        const bool inside = y >= p.y.lo && y < p.y.hi;
        const i64 end = inside ? std::min(p.x.length, steps(p.x.hi - px)) : 0,
                  begin = std::min(end, steps(p.x.lo - px));
        std::fill_n(to, begin, 0), std::fill_n(to + end, p.x.length - end, 0);
        const i64 from = y * p.y.unit + (px + begin * p.x.step) * p.x.unit;
        j.t->round(image + from, p.channels.data() + 2 * pair, 1, p.x.step * p.x.unit, end - begin, to + begin, 0,
                   kGroup);
      }
}

void plane_task(void* arg, int task, int) {
  const Job& j = *static_cast<const Job*>(arg);
  const i64 pairs = static_cast<i64>(j.p->channels.size() / 2), image = task / pairs, pair = task % pairs;
  make_plane(j, j.run->problem(j.group, j.first + image).image, pair,
             j.planes + image * image_words(*j.p) + pair * j.p->plane);
}

// ---- panels ------------------------------------------------------------------------------------

// Columns [begin, end) of a task, pairs [k, k + count); groups of sixteen columns lie `group` words apart.
void from_image(const Job& j, i64 begin, i64 end, i64 k, i64 count, Word* to, i64 group) {
  const Pairs& p = *j.p;
  for_images(p, begin, end, [&](i64 image, i64 pixel, i64 n, i64 c) {
    const float* from = j.run->problem(j.group, j.first + image).image;
    for_rows(p, pixel, n, [&](i64 y, i64 x, i64 some) {
      j.t->round(from + y * p.y.unit + x * p.x.unit, p.channels.data() + 2 * k, count, p.x.unit, some, to, c - begin,
                 group);
      c += some;
    });
  });
}
void from_planes(const Job& j, i64 begin, i64 end, i64 k, i64 count, Word* to, i64 group) {
  const Pairs& p = *j.p;
  for (i64 first = begin; first < end; first += kGroup, to += group)
    for_images(p, first, std::min(end, first + kGroup), [&](i64 image, i64 pixel, i64 n, i64 c) {
      const Word* from = j.planes + image * image_words(p);
      for_rows(p, pixel, n, [&](i64 y, i64 x, i64 some) {
        j.t->gather(from + y * p.x.length + x, p.at.data() + k, count, some, to + c - first);
        c += some;
      });
    });
}

// ---- tiles -------------------------------------------------------------------------------------

// One tile: in the output where all of it lies side by side there, else beside it.
void one_tile(const Job& j, const std::byte* a, const std::byte* b, i64 depth, i64 row, i64 column, i64 end, bool add) {
  const Pairs& p = *j.p;
  const DenseUnit& u = *p.unit;
  const i64 rows = std::min<i64>(u.mr, p.rows - row), columns = std::min<i64>(u.nr, end - column);
  const i64 group = u.b_bytes(depth), pixel = column % p.pixels;
  if (columns == u.nr && pixel + columns <= p.pixels) {
    float* out = j.run->problem(j.group, j.first + column / p.pixels).out + row * p.out_row + pixel;
    return u.tile(a, b, group, depth, out, p.out_row, rows, columns, add);
  }
  constexpr i64 kMost = 32;  // rows and columns of a tile
  alignas(64) float block[kMost * kMost];
  const auto each = [&](const auto& f) {
    for_images(p, column, column + columns, [&](i64 image, i64 from, i64 n, i64 c) {
      f(j.run->problem(j.group, j.first + image).out + row * p.out_row + from, block + c - column, n);
    });
  };
  if (add) each([&](float* out, float* sums, i64 n) { j.t->move(out, p.out_row, rows, n, sums, u.nr); });
  u.tile(a, b, group, depth, block, u.nr, rows, u.nr, add);
  each([&](float* out, float* sums, i64 n) { j.t->move(sums, u.nr, rows, n, out, p.out_row); });
}

void tiles_task(void* arg, int task, int worker) {
  const Job& j = *static_cast<const Job*>(arg);
  const Pairs& p = *j.p;
  const DenseUnit& u = *p.unit;
  const i64 row = task % j.across * j.strips_task * u.mr, rows = std::min(j.strips_task * u.mr, p.rows - row);
  const i64 column = task / j.across * j.tiles_task * u.nr;
  const i64 end = std::min(j.columns, column + j.tiles_task * u.nr), pairs = p.depth() / 2;
  std::byte* panel = j.panels + worker * j.panel_bytes;
  if (u.begin) u.begin();
  for (i64 k = 0; k < pairs; k += kBlock) {
    const i64 count = std::min(kBlock, pairs - k), depth = 2 * count, group = u.b_bytes(depth);
    auto* to = reinterpret_cast<Word*>(panel);
    (p.planes ? from_planes : from_image)(j, column, end, k, count, to, group / 4);
    for (i64 c = column; c < end && group > count * 64; c += kGroup, to += group / 4)  // the rest of a step
      std::fill(to + count * kGroup, to + group / 4, 0);
    for (i64 r = row; r < row + rows; r += u.mr) {
      const std::byte* a = j.weights + r / u.mr * u.a_bytes(p.depth()) + u.a_bytes(2 * k);
      for (i64 c = column; c < end; c += u.nr)
        one_tile(j, a, panel + (c - column) / kGroup * group, depth, r, c, end, k > 0);
      if (k + count == pairs)  // while they are in the cache
        for_images(p, column, end, [&](i64 image, i64 pixel, i64 n, i64) {
          j.run->finish(j.run->problem(j.group, j.first + image), r, std::min<i64>(u.mr, p.rows - r), pixel, pixel + n);
        });
    }
  }
  if (u.end) u.end();
}

// How many tiles and strips a task has: what takes the least time, in products of vectors for a pair of k.
void split(Job& j, int workers) {
  const Pairs& p = *j.p;
  const DenseUnit& u = *p.unit;
  const i64 tile = u.mr * u.nr / kGroup, pack = (p.planes ? 12 : 20) * u.nr / 32, weights = 6;
  const i64 tiles = parts(j.columns, u.nr), strips = parts(p.rows, u.mr);
  i64 least = 0;
  for (i64 n = std::min(tiles, std::max<i64>(1, kColumns / u.nr)); n > 0; --n)
    for (i64 pieces = 1; pieces <= std::min<i64>(strips, 2 * workers); ++pieces) {
      const i64 height = parts(strips, pieces), tasks = parts(tiles, n) * parts(strips, height);
      const i64 all = parts(tasks, workers) * (height * (n * tile + weights) + n * pack + tile);
      if (least > 0 && all >= least) continue;
      least = all, j.tiles_task = n, j.strips_task = height, j.across = parts(strips, height);
    }
}

class PairsKernel final : public Kernel {
 public:
  PairsKernel(const Convolution& c, std::shared_ptr<Parallel> parallel, std::shared_ptr<const Epilogue> epilogue)
      : p_(c.pairs), outer_(c.outer), parallel_(std::move(parallel)), epilogue_(std::move(epilogue)) {
    const DenseUnit* u = p_->unit;
    const bool fast = u == &kBf16Avx512Bf16 || u == &kDenseAmx[static_cast<int>(Arithmetic::Bf16)];
    table_ = fast ? &kPairsAvx512Bf16 : &kPairsGeneric;
    sizes_.push_back(c.image_offset);
    for (const auto& a : outer_) sizes_.push_back(a.extent);
    if (epilogue_)
      for (const Dim& d : epilogue_->sizes()) sizes_.push_back(d);
  }
  std::string name() const override {
    return "conv_" + std::string(p_->unit->name) + (epilogue_ ? "+" + epilogue_->loop()->name() : "");
  }
  std::vector<Dim> sizes() const override { return sizes_; }
  Dim scratch_bytes(int workers) const override {
    i64 images = 1;
    for (const auto& a : outer_) images *= a.weight == Dim(0) ? a.extent.bounds().hi : 1;
    return planes_bytes(images) + workers * panel_bytes(*p_->unit);
  }
  std::string source() const override { return epilogue_ ? epilogue_->loop()->source() : std::string(); }
  std::shared_ptr<Parallel> parallel() const override { return parallel_; }
  Dim flops() const override {
    i64 depth = 0;
    for (const i64 w : p_->weights) depth += w != Pairs::kNothing;
    Dim f = 2 * depth * p_->rows * p_->pixels;
    for (const auto& a : outer_) f = f * a.extent;
    return f;
  }
  void run(const Launch& l) const override;

 private:
  i64 planes_bytes(i64 images) const { return up(images_at_once(*p_, images) * image_words(*p_) * 4, 64); }
  std::shared_ptr<const Pairs> p_;
  std::vector<Convolution::Axis> outer_;
  std::shared_ptr<Parallel> parallel_;
  std::shared_ptr<const Epilogue> epilogue_;
  const PairsTable* table_;
  std::vector<Dim> sizes_;
};

void PairsKernel::run(const Launch& l) const {
  const Pairs& p = *p_;
  ConvRun r;
  r.launch = &l, r.epilogue = epilogue_.get(), r.epilogue_sizes = l.sizes.data() + 1 + outer_.size();
  r.base.image = static_cast<const float*>(l.in[0]) + l.sizes[0], r.base.out = static_cast<float*>(l.out);
  r.base.rows = p.rows, r.base.out_row = p.out_row, r.base.pixels = p.pixels;
  for (std::size_t i = 0; i < outer_.size(); ++i) {
    const auto& a = outer_[i];
    r.outer[r.axes++] = {l.sizes[1 + i], *a.image.constant(), *a.weight.constant(), *a.out.constant()};
    r.count *= l.sizes[1 + i];
  }
  if (r.count <= 0) return;
  const i64 images = r.images(), some = images_at_once(p, images);
  Job j{.p = &p, .t = table_, .run = &r};
  j.planes = reinterpret_cast<Word*>(l.scratch);
  j.panels = l.scratch + planes_bytes(images), j.panel_bytes = panel_bytes(*p.unit);
  for (j.group = 0; j.group < p.groups; ++j.group)
    for (j.first = 0; j.first < images; j.first += some) {
      const i64 n = std::min(some, images - j.first);
      j.weights = static_cast<const std::byte*>(l.in[1]) + j.group * p.group_bytes();
      j.columns = n * p.pixels;
      if (p.planes) l.parallel.run(static_cast<int>(n * static_cast<i64>(p.channels.size() / 2)), plane_task, &j);
      split(j, l.parallel.workers());
      const i64 tasks = parts(parts(j.columns, p.unit->nr), j.tiles_task) * j.across;
      l.parallel.run(static_cast<int>(tasks), tiles_task, &j);
    }
}

}  // namespace

std::shared_ptr<const Kernel> pairs_kernel(const Convolution& c, std::shared_ptr<Parallel> parallel,
                                           std::shared_ptr<const Epilogue> epilogue) {
  return std::make_shared<PairsKernel>(c, std::move(parallel), std::move(epilogue));
}

}  // namespace lc::host
