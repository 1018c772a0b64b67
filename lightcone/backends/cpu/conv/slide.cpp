// Direct convolution over a copy of the image. Each channel becomes a plane with its padding around it; a stride of two
// makes four planes, of the even and odd rows and columns. In a plane, every tap reads contiguous pixels at one shift,
// so the image is copied once instead of once per tap. Rows of a plane are as wide as the windows reach; results past
// the output's last column are dropped.
#include <algorithm>
#include <array>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/backends/cpu/products/rounding.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kFewPixels = 1024;  // above, strips packed for L1 are faster unless windows overlap
constexpr i64 kStrips = 8;        // maximum strips of a task
constexpr i64 kPlanesTask = 16;   // planes that one task copies
constexpr i64 kSlack = 64;        // floats past the last plane that the last vectors read

i64 most_copied(const ConvRun& run) { return run.blocking.llc_bytes(16) / 4; }  // in floats
// Maximum strips of a task: its part of a panel's sums stays in L1.
i64 most_strips(const ConvRun& run) {
  return std::clamp<i64>(run.blocking.l1_budget_floats() * 7 / 8 / (run.t->nr * run.t->mr), 1, kStrips);
}

// Layout of the copy.
struct PaddedCopy {
  struct Axis {
    i64 extent, step, unit;  // output pixels; coordinates between pixels; floats per coordinate
    i64 lo, hi;
    i64 phases, length;
  };
  Axis y, x;
  i64 phase, plane, planes;  // floats of a phase and of a plane; number of planes
  i64 pixels, strips;        // including those that are dropped

  i64 floats() const { return plane * planes + kSlack; }
};

bool window(const ConvPlan::Sum& s, int axis) { return s.dilation[axis] != 0; }

std::optional<PaddedCopy> layout(const ConvRun& run) {
  const ConvProblem& p = run.base;
  if (p.extent[0] != 1 || p.step[0] != 0 || p.pixels == 0 || p.depth == 0) return std::nullopt;
  i64 reach[kSpatial] = {}, unit[kSpatial] = {}, planes = 1;
  for (std::size_t i = 0; i < run.shape->sums.size(); ++i) {
    const auto& s = run.shape->sums[i];
    int moved = 0;
    for (int j = 0; j < kSpatial; ++j) {
      if (!window(s, j)) continue;
      if (s.dilation[j] < 0 || run.sum_image[i] % s.dilation[j] != 0 || unit[j] != 0) return std::nullopt;
      ++moved;
      reach[j] = s.dilation[j] * (run.sum_extent[i] - 1);
      unit[j] = run.sum_image[i] / s.dilation[j];
    }
    if (moved > 1) return std::nullopt;
    if (moved == 0) planes *= run.sum_extent[i];
  }
  if (unit[0] != 0) return std::nullopt;
  for (int j = 1; j < kSpatial; ++j) {
    const i64 step = p.step[j];  // 0: the axis has one pixel, or neither windows nor padding
    if (unit[j] == 0) unit[j] = p.image_step[j] / std::max<i64>(step, 1);
    if (step < 0 || (step > 0 && p.image_step[j] != step * unit[j])) return std::nullopt;
    if (step == 0 && reach[j] > 0 && p.extent[j] > 1) return std::nullopt;
  }
  const auto axis = [&](int j) -> PaddedCopy::Axis {
    const i64 step = std::max<i64>(p.step[j], 1), read = (p.extent[j] - 1) * step + reach[j] + 1;  // coordinates read
    return {p.extent[j],
            step,
            unit[j],
            p.lo[j],
            std::min(p.hi[j], read),
            std::min(step, reach[j] + 1),
            p.extent[j] + reach[j] / step};
  };
  PaddedCopy c{axis(1), axis(2), 0, 0, planes, 0, 0};
  c.phase = c.y.length * c.x.length;
  c.plane = round_up(c.y.phases * c.x.phases * c.phase + 16, 16) | 16;  // an odd number of cache lines, with slack
  c.pixels = (c.y.extent - 1) * c.x.length + c.x.extent;
  c.strips = ceil_div(c.pixels, run.t->nr);
  return c;
}

struct SlideJob {
  const ConvRun* run;
  PaddedCopy copy;
  i64* at;                  // offset of each tap in the copy
  i64* from;                // offset of each plane in the image
  float *planes, *workers;  // per worker: sums of a panel, and the panel if it is not packed
  i64 worker_floats;
  ConvProblem p;
  i64 strips_task, rows, across;
};

i64 worker_floats(const ConvTable& t) { return round_up(kStrips * t.nr * t.mr + kDepth * t.mr + 16, 16); }

// Computes the offsets of taps and planes. Taps are in the order of the sums.
void find_taps(SlideJob& j) {
  const ConvRun& r = *j.run;
  const std::size_t n = r.shape->sums.size();
  i64 index[16] = {}, last = -1;
  for (i64 k = 0; k < r.base.depth; ++k) {
    i64 plane = 0, image = 0, d[kSpatial] = {};
    for (std::size_t i = 0; i < n; ++i) {
      const auto& s = r.shape->sums[i];
      if (window(s, 1) || window(s, 2)) {
        for (int a = 1; a < kSpatial; ++a) d[a] += s.dilation[a] * index[i];
      } else {
        plane = plane * r.sum_extent[i] + index[i], image += index[i] * r.sum_image[i];
      }
    }
    const PaddedCopy& c = j.copy;
    const i64 phase = d[1] % c.y.step * c.x.phases + d[2] % c.x.step;
    j.at[k] = plane * c.plane + phase * c.phase + d[1] / c.y.step * c.x.length + d[2] / c.x.step;
    if (plane > last) last = plane, j.from[plane] = image;
    for (std::size_t i = n; i-- > 0 && ++index[i] == r.sum_extent[i];) index[i] = 0;
  }
}

void copy_plane(const SlideJob& j, const ConvProblem& p, i64 plane, float* to) {
  const PaddedCopy& c = j.copy;
  const float* image = p.image + j.from[plane];
  to += plane * c.plane;
  const auto steps = [&c](i64 d) { return d <= 0 ? 0 : (d + c.x.step - 1) / c.x.step; };
  for (i64 py = 0; py < c.y.phases; ++py)
    for (i64 px = 0; px < c.x.phases; ++px)
      for (i64 q = 0; q < c.y.length; ++q, to += c.x.length) {
        const i64 y = q * c.y.step + py;
        const bool inside = y >= c.y.lo && y < c.y.hi;
        const i64 end = inside ? std::min(c.x.length, steps(c.x.hi - px)) : 0,
                  begin = std::min(end, steps(c.x.lo - px));
        j.run->t->copy_row(image + y * c.y.unit + px * c.x.unit, c.x.step * c.x.unit, begin, end, c.x.length, to);
      }
}

// Writes a panel's sums to the output's pixels and runs the epilogue.
void write_rows(const SlideJob& j, const ConvProblem& p, i64 row, i64 rows, i64 begin, i64 end, const float* sums,
                i64 width) {
  const PaddedCopy& c = j.copy;
  i64 y = begin / c.x.length, x = begin % c.x.length, first = -1, last = 0;
  for (i64 at = begin; at < end; ++y, x = 0) {
    const i64 n = std::min(end - at, c.x.length - x), kept = std::min(n, c.x.extent - x);
    const i64 to = y * c.x.extent + x;
    for (i64 r = 0; r < rows && kept > 0; ++r)
      std::copy_n(sums + r * width + at - begin, kept, p.out + (row + r) * p.out_row + to);
    if (kept > 0) first = first < 0 ? to : first, last = to + kept;
    at += n;
  }
  if (first >= 0) j.run->finish(p, row, rows, first, last);
}

void part(const SlideJob& j, const ConvProblem& p, const float* planes, i64 row, i64 rows, i64 strip, i64 strips,
          float* scratch) {
  const ConvTable& t = *j.run->t;
  const i64 depth = p.depth, step = depth_step(depth), width = strips * t.nr;
  const i64 begin = strip * t.nr, end = std::min(j.copy.pixels, begin + width);
  float *sums = scratch, *mine = scratch + kStrips * t.nr * t.mr;
  for (i64 r = row; r < row + rows; r += t.mr) {
    const i64 height = std::min<i64>(t.mr, p.rows - r);
    for (i64 k = 0; k < depth; k += step) {
      const i64 n = std::min(step, depth - k);
      const float *panel = mine, *next = mine;
      if (p.packed) {
        panel = p.packed + r * depth + k * t.mr;
        next = k + step < depth || r + t.mr < row + rows ? panel + step * t.mr : panel;
      } else {
        t.pack_weights(&p, r, height, k, n, mine);
      }
      for (i64 s = begin; s < end; s += t.nr)
        t.slide(panel, next, planes + s, j.at + k, n, sums + s - begin, width, height, std::min<i64>(t.nr, end - s),
                k > 0);
    }
    write_rows(j, p, r, height, begin, end, sums, width);
  }
}

void copy_task(void* arg, int task, int) {
  const SlideJob& j = *static_cast<const SlideJob*>(arg);
  const i64 end = std::min(j.copy.planes, (task + 1) * kPlanesTask);
  for (i64 plane = task * kPlanesTask; plane < end; ++plane) copy_plane(j, j.p, plane, j.planes);
}

void part_task(void* arg, int task, int worker) {
  const SlideJob& j = *static_cast<const SlideJob*>(arg);
  const i64 row = task % j.across * j.rows, strip = task / j.across * j.strips_task;
  part(j, j.p, j.planes, row, std::min(j.rows, j.p.rows - row), strip, std::min(j.strips_task, j.copy.strips - strip),
       j.workers + worker * j.worker_floats);
}

// Computes one product alone, with a copy in the worker's own scratch.
void whole_task(void* arg, int task, int worker) {
  const SlideJob& j = *static_cast<const SlideJob*>(arg);
  const i64 images = j.run->images();
  const ConvProblem p = j.run->problem(task / images, task % images);
  float* planes = j.planes + worker * round_up(j.copy.floats(), 16);
  for (i64 plane = 0; plane < j.copy.planes; ++plane) copy_plane(j, p, plane, planes);
  const i64 strips = most_strips(*j.run);
  for (i64 s = 0; s < j.copy.strips; s += strips)
    part(j, p, planes, 0, p.rows, s, std::min(strips, j.copy.strips - s), j.workers + worker * j.worker_floats);
}

// Divides the work into few even tasks. Rows are divided first, because a task reads its pixels again for each panel.
void split(SlideJob& j, int workers) {
  const i64 mr = j.run->t->mr, panels = ceil_div(j.p.rows, mr);
  i64 least = 0;
  for (i64 n = std::min(most_strips(*j.run), j.copy.strips); n > 0; --n)
    for (i64 pieces = 1; pieces <= std::min<i64>(panels, 4 * workers); ++pieces) {
      const i64 tasks = ceil_div(j.copy.strips, n) * pieces, height = ceil_div(panels, pieces);
      const i64 all = ceil_div(tasks, workers) * (height * (n * mr + 2) + 4);
      if (least > 0 && all >= least) continue;
      least = all, j.strips_task = n, j.rows = height * mr;
    }
  j.across = ceil_div(j.p.rows, j.rows);
}

const char* slide_refuses(const ConvRun& separate) {
  ConvRun run = separate;
  join_pixels(run.base);
  const auto c = layout(run);
  if (!run.room_to_slide || !c) return "the taps are not shifts of a padded copy of the image";
  if (c->floats() > most_copied(run)) return "a padded copy of the image does not fit in the last-level cache";
  if (c->planes >= run.base.depth && run.base.pixels > kFewPixels)
    return "windows do not overlap, and a result has more than 1,024 pixels";
  return nullptr;
}

void slide(const ConvRun& separate, float* scratch) {
  ConvRun run = separate;
  join_pixels(run.base);
  const int workers = run.launch->parallel.workers();
  const i64 depth = run.base.depth;
  SlideJob j{&run, *layout(run), reinterpret_cast<i64*>(scratch), nullptr, nullptr, nullptr, 0, run.base, 0, 0, 0};
  j.from = j.at + depth;
  j.planes = scratch + round_up(2 * (depth + depth), 16);
  find_taps(j);
  const bool whole = run.count >= 2 * workers;
  j.workers = j.planes + (whole ? workers : 1) * round_up(j.copy.floats(), 16);
  j.worker_floats = worker_floats(*run.t);
  if (whole) return run.launch->parallel.run(static_cast<int>(run.count), whole_task, &j);
  split(j, workers);
  const i64 images = run.images();
  for (i64 product = 0; product < run.count; ++product) {
    j.p = run.problem(product / images, product % images);
    run.launch->parallel.run(static_cast<int>(ceil_div(j.copy.planes, kPlanesTask)), copy_task, &j);
    run.launch->parallel.run(static_cast<int>(ceil_div(j.copy.strips, j.strips_task) * j.across), part_task, &j);
  }
}

}  // namespace

// It multiplies as the direct algorithm does, with fewer copies: where it may compute a run, it is not slower.
const ConvInRun kSlide = {slide_refuses, direct_cost, slide};

i64 slide_floats(const ConvRun& largest, int workers) {
  const auto c = layout(largest);
  if (!c) return 0;
  const i64 depth = largest.base.depth, copy = std::min(c->floats(), most_copied(largest));
  return round_up(2 * (depth + depth), 16) + workers * (round_up(copy, 16) + worker_floats(*largest.t));
}

}  // namespace lc::backends::cpu
