// Winograd's F(4x4, 3x3): tiles of 6x6 pixels and the filters are transformed, 36 small matrix products (filters x
// channels x tiles) replace the sum of nine products, and the result is transformed back to 4x4 pixels.
//
// Tiles are processed in blocks of whole tile rows, whose transformed image stays in the caches. Filters are
// transformed just before use: 36 bytes are read instead of 144, and memory bandwidth is the bottleneck.
#include <algorithm>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/backends/cpu/products/rounding.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kTiles = 128;           // tiles per block, about; affects bits where a block is computed directly
constexpr i64 kMostTilesOfRow = 256;  // maximum tiles per row of the image
constexpr i64 kChannels = 64;         // channels summed at a time; affects bits
constexpr i64 kPanels = 2;            // panels of filters per task, if there are enough
constexpr i64 kFewTasks = 8;          // with fewer tasks, threads would wait for each other
constexpr i64 kPart = 16;             // channels per image task
constexpr i64 kPad = 16;              // a panel's last vector is wider than the panel

// Number of filters up to which transformed filters are kept; most of them then lie in L2.
i64 most_kept(const Blocking& b) { return b.l2_budget_floats() * 9 / 2 / kWinogradPoints; }

// Division of the work. It depends on the sizes alone, except for `whole`, because it affects the bits of results.
struct Plan {
  i64 channels, rows, height, width;  // sizes of the output
  i64 images, groups;
  i64 down, across;         // tiles of an image
  i64 block_rows, blocks;   // tile rows per block
  i64 tiles;                // tiles per block, a multiple of nr
  i64 panels, task_panels;  // panels of filters: all, and per task
  bool keep;                // keep transformed filters
  bool whole;               // a task is a block; else blocks are sequential and parallel over filters

  Plan(const ConvRun& run, int workers) {
    const ConvProblem& p = run.base;
    channels = p.depth / 9, rows = p.rows, height = p.extent[1], width = p.extent[2];
    images = run.images(), groups = images ? run.groups() : 0;
    down = ceil_div(height, kWinogradOut), across = std::max<i64>(1, ceil_div(width, kWinogradOut));
    const i64 all = std::max<i64>(1, images * down);
    blocks = ceil_div(all, std::max<i64>(1, kTiles / across));
    block_rows = ceil_div(all, blocks), blocks = ceil_div(all, block_rows);
    tiles = round_up(block_rows * across, run.t->nr);
    panels = ceil_div(rows, run.t->mr);
    keep = rows * channels <= most_kept(run.blocking) && blocks > 1;
    task_panels = ceil_div(panels, kPanels) < kFewTasks ? 1 : kPanels;
    whole = blocks * groups >= 4 * workers || ceil_div(panels, task_panels) < 2 * workers;
  }
  i64 points_floats() const { return tiles * kWinogradPoints * channels; }
  i64 image_floats() const { return points_floats() + tiles * static_cast<i64>(sizeof(WinogradTile) / sizeof(float)); }
  i64 filter_floats(const ConvTable& t, i64 depth, i64 count) const {
    return kWinogradPoints * count * (depth * t.mr + kPad);
  }
  i64 kept_floats(const ConvTable& t) const {
    return keep ? filter_floats(t, channels, panels) + round_up(panels, 16) : 0;
  }
  i64 worker_floats(const ConvRun& run) const {
    const ConvTable& t = *run.t;
    const i64 filters = keep ? 0 : filter_floats(t, kChannels, kPanels);
    return round_up(std::max(filters + kWinogradPoints * kPanels * t.mr * tiles, direct_floats(run)), 16);
  }
};

struct WinogradJob {
  const ConvRun* run;
  Plan plan;
  float *kept, *images, *workers;
  unsigned char *bad_filters, *bad_images;  // per panel; per part of the channels
  i64 group = 0, block = 0;

  float* scratch(int worker) const { return workers + worker * plan.worker_floats(*run); }
  WinogradTile* places(float* image) const { return reinterpret_cast<WinogradTile*>(image + plan.points_floats()); }
  float* image(int worker) const { return images + (plan.whole ? worker * plan.image_floats() : 0); }
};

// Addresses and extents of tile t of a block.
WinogradTile place(const WinogradJob& j, i64 group, i64 block, i64 t) {
  const Plan& n = j.plan;
  const i64 row = block * n.block_rows + t / n.across, x = t % n.across * kWinogradOut;
  if (t >= n.block_rows * n.across || row >= n.images * n.down) return {};
  const i64 y = row % n.down * kWinogradOut;
  const ConvProblem p = j.run->problem(group, row / n.down);
  const auto low = [&](int a, i64 at) { return std::clamp<i64>(p.lo[a] - at, 0, 6); };
  const auto high = [&](int a, i64 at) { return std::clamp<i64>(std::min(p.hi[a], p.extent[a] + 2) - at, 0, 6); };
  return {p.image + y * p.image_step[1] + x * p.image_step[2],
          p.out + y * n.width + x,
          low(1, y),
          high(1, y),
          low(2, x),
          high(2, x),
          std::min(kWinogradOut, n.height - y),
          std::min(kWinogradOut, n.width - x)};
}

void find_places(const WinogradJob& j, i64 group, i64 block, WinogradTile* to) {
  for (i64 t = 0; t < j.plan.tiles; ++t) to[t] = place(j, group, block, t);
}

// Transforms channels [first, first + count) of a block of tiles to [strip][point][channel][nr]. Returns false if a
// number is infinite, NaN or too large.
bool transform_image(const WinogradJob& j, i64 first, i64 count, float* to) {
  const ConvTable& t = *j.run->t;
  const ConvProblem& b = j.run->base;
  const i64 lanes = t.lanes, stride = j.plan.channels * t.nr;
  bool good = true;
  for (i64 i = 0; i < j.plan.tiles; i += lanes) {
    float* strip = to + i / t.nr * kWinogradPoints * stride + i % t.nr;
    for (i64 c = first; c < first + count; ++c)
      good &=
          t.image_in(j.places(to) + i, b.taps[9 * c].image, b.image_step[1], b.image_step[2], strip + c * t.nr, stride);
  }
  return good;
}

// Computes the block's pixels by the direct algorithm.
void direct_block(const WinogradJob& j, i64 group, i64 block, i64 row, i64 rows, float* scratch) {
  const Plan& n = j.plan;
  const i64 end = std::min(n.images * n.down, (block + 1) * n.block_rows);
  for (i64 r = block * n.block_rows; r < end; ++r) {
    const i64 y = r % n.down * kWinogradOut;
    const i64 last = std::min(n.height, y + kWinogradOut) * n.width;
    const i64 pixels = direct_pixels(j.run->blocking);
    for (i64 at = y * n.width; at < last; at += pixels) {
      const Span span{j.run->problem(group, r / n.down), at, std::min(last, at + pixels)};
      direct_part(*j.run, &span, 1, row, rows, scratch);
    }
  }
}

void write_tiles(const WinogradJob& j, i64 row, i64 rows, const float* products, const WinogradTile* places) {
  const ConvTable& t = *j.run->t;
  const Plan& n = j.plan;
  for (i64 i = 0; i < n.tiles; i += t.lanes)
    for (i64 r = 0; r < rows; ++r)
      t.out(products + r * n.tiles + i, n.task_panels * t.mr * n.tiles, places + i, (row + r) * j.run->base.out_row,
            n.width);
}

// Runs the epilogue on the rows of pixels that a block has of each image.
void finish_block(const WinogradJob& j, i64 group, i64 block, i64 row, i64 rows) {
  const Plan& n = j.plan;
  const i64 end = std::min(n.images * n.down, (block + 1) * n.block_rows);
  for (i64 r = block * n.block_rows; r < end;) {
    const i64 image = r / n.down, next = std::min(end, (image + 1) * n.down);
    j.run->finish(j.run->problem(group, image), row, rows, r % n.down * kWinogradOut * n.width,
                  std::min(n.height, ((next - 1) % n.down + 1) * kWinogradOut) * n.width);
    r = next;
  }
}

// Multiplies some panels of filters by a block of tiles.
void multiply(const WinogradJob& j, i64 group, i64 block, i64 pair, float* image, int worker) {
  const ConvTable& t = *j.run->t;
  const Plan& n = j.plan;
  const ConvProblem p = j.run->problem(group, 0);
  float* const scratch = j.scratch(worker);
  const i64 row = pair * n.task_panels * t.mr, rows = std::min<i64>(n.task_panels * t.mr, p.rows - row);
  const i64 heights = ceil_div(rows, t.mr), count = n.block_rows * n.across;
  const i64 depth_step = n.keep ? n.channels : std::min(n.channels, kChannels);
  const i64 panel = depth_step * t.mr + kPad, point = (n.keep ? n.panels : n.task_panels) * panel;
  float *products = scratch, *filters = scratch + kWinogradPoints * n.task_panels * t.mr * n.tiles;
  if (n.keep) filters = j.kept + pair * n.task_panels * panel;
  bool good = true;
  for (i64 c = 0; c < n.channels && good; c += depth_step) {
    const i64 depth = std::min(depth_step, n.channels - c);
    for (i64 h = 0; h < heights; ++h)
      good = good && (n.keep ? !j.bad_filters[pair * n.task_panels + h]
                             : t.weights_in(&p, row + h * t.mr, std::min<i64>(t.mr, rows - h * t.mr), c, depth,
                                            filters + h * panel, point));
    for (i64 q = 0; q < kWinogradPoints && good; ++q)
      for (i64 h = 0; h < heights; ++h)
        for (i64 k = 0; k < depth; k += kChannels)
          for (i64 s = 0; s < count; s += t.nr) {
            const float* strip = image + s * kWinogradPoints * n.channels + (q * n.channels + c + k) * t.nr;
            t.tile(filters + q * point + h * panel + k * t.mr, strip, std::min(kChannels, depth - k),
                   products + (q * n.task_panels + h) * t.mr * n.tiles + s, n.tiles,
                   std::min<i64>(t.mr, rows - h * t.mr), count - s <= t.lanes ? t.lanes : t.nr, c + k > 0);
          }
  }
  if (!good) return direct_block(j, group, block, row, rows, scratch);
  write_tiles(j, row, rows, products, j.places(image));
  finish_block(j, group, block, row, rows);
}

void keep_task(void* arg, int task, int) {
  const WinogradJob& j = *static_cast<const WinogradJob*>(arg);
  const i64 mr = j.run->t->mr, panel = j.plan.channels * mr + kPad, row = task * mr;
  const ConvProblem p = j.run->problem(j.group, 0);
  j.bad_filters[task] = !j.run->t->weights_in(&p, row, std::min(mr, j.plan.rows - row), 0, j.plan.channels,
                                              j.kept + task * panel, j.plan.panels * panel);
}

void whole_plane_task(void* arg, int block, int worker) {
  const WinogradJob& j = *static_cast<const WinogradJob*>(arg);
  float *image = j.image(worker), *scratch = j.scratch(worker);
  find_places(j, j.group, block, j.places(image));
  if (!transform_image(j, 0, j.plan.channels, image)) return direct_block(j, j.group, block, 0, j.plan.rows, scratch);
  for (i64 pair = 0; pair * j.plan.task_panels < j.plan.panels; ++pair)
    multiply(j, j.group, block, pair, image, worker);
}

void image_task(void* arg, int task, int) {
  const WinogradJob& j = *static_cast<const WinogradJob*>(arg);
  const i64 first = task * kPart;
  j.bad_images[task] = !transform_image(j, first, std::min(kPart, j.plan.channels - first), j.images);
}

void pair_task(void* arg, int pair, int worker) {
  const WinogradJob& j = *static_cast<const WinogradJob*>(arg);
  const i64 height = j.plan.task_panels * j.run->t->mr, row = pair * height,
            image_parts = ceil_div(j.plan.channels, kPart);
  if (std::any_of(j.bad_images, j.bad_images + image_parts, [](unsigned char b) { return b != 0; }))
    return direct_block(j, j.group, j.block, row, std::min(height, j.plan.rows - row), j.scratch(worker));
  multiply(j, j.group, j.block, pair, j.images, worker);
}

// Says why the windows of a pixel and the next one, or a tap and the next one, are not one pixel apart.
std::string stride_or_dilation(const ConvPlan::Pixel& p, const ConvPlan::Sum& s, std::size_t axis) {
  if (s.dilation[axis] > 1) return str_cat("the dilation is ", s.dilation[axis]);
  const auto pixel = p.image.constant(), tap = s.image.constant();
  if (pixel && tap && *tap > 0 && *pixel > *tap && *pixel % *tap == 0) return str_cat("the stride is ", *pixel / *tap);
  if (pixel && tap && *pixel > 0 && *tap > *pixel && *tap % *pixel == 0)
    return str_cat("the dilation is ", *tap / *pixel);
  return "the stride or the dilation is not 1";
}

const char* winograd_refuses(const ConvRun& run) {
  if (run.winograd == UseWinograd::Never) return "it is switched off, or the shape does not allow it";
  if (run.winograd == UseWinograd::Always) return nullptr;
  const ConvProblem& p = run.base;
  const Plan n(run, 1);
  if (n.channels < 16) return "there are fewer than 16 channels";
  if (n.rows < 16) return "there are fewer than 16 filters";
  if (n.across > kMostTilesOfRow) return "a row of the image has more than 256 tiles";
  if (n.height == 0 || n.width == 0 || n.images == 0) return "there is nothing to compute";
  for (int a = 1; a < kSpatial; ++a)  // it would have to be exactly zero, which the transforms do not guarantee
    if (p.lo[a] > 1 || p.hi[a] < p.extent[a] + 1) return "a window may lie entirely in the padding";
  return nullptr;
}

// Estimates cycles as measured on AVX-512: the products, and the transforms per image channel, output channel and
// filter.
double winograd_cost(const ConvRun& run) {
  if (run.winograd == UseWinograd::Always) return -1;  // cheaper than all others
  const Plan n(run, 1);
  const auto d = [](i64 v) { return static_cast<double>(v); };
  const double lanes = 2 * run.t->lanes, filters = d(n.channels) * d(n.rows);
  const double tiles = d(round_up(n.block_rows * n.across, run.t->lanes)) * d(n.blocks);
  const double products = kWinogradPoints * filters * tiles / lanes;
  const bool wide = run.t->lanes == 16;  // has shuffles that transpose tiles
  const double tile = wide ? 9 * d(n.channels) + 7 * d(n.rows) : 40 * d(n.channels) + 30 * d(n.rows);
  const double transforms = tiles * tile + (run.packed_filters ? 8 : 20) * filters * (n.keep ? 2 : d(n.blocks));
  return products + transforms;
}

void winograd(const ConvRun& run, float* scratch) {
  const int workers = run.launch->parallel.workers();
  WinogradJob j{&run, Plan(run, workers), scratch, nullptr, nullptr, nullptr, nullptr};
  const Plan& n = j.plan;
  j.images = j.kept + round_up(n.kept_floats(*run.t), 16);
  j.workers = j.images + (n.whole ? workers : 1) * n.image_floats();
  j.bad_filters =
      reinterpret_cast<unsigned char*>(j.kept + round_up(n.kept_floats(*run.t), 16)) - round_up(n.panels, 16);
  j.bad_images = reinterpret_cast<unsigned char*>(j.workers + workers * n.worker_floats(run));
  for (j.group = 0; j.group < n.groups; ++j.group) {
    if (n.keep) run.launch->parallel.run(static_cast<int>(n.panels), keep_task, &j);
    if (n.whole) {
      run.launch->parallel.run(static_cast<int>(n.blocks), whole_plane_task, &j);
      continue;
    }
    for (j.block = 0; j.block < n.blocks; ++j.block) {
      find_places(j, j.group, j.block, j.places(j.images));
      run.launch->parallel.run(static_cast<int>(ceil_div(n.channels, kPart)), image_task, &j);
      run.launch->parallel.run(static_cast<int>(ceil_div(n.panels, n.task_panels)), pair_task, &j);
    }
  }
}

}  // namespace

const ConvInRun kWinograd = {winograd_refuses, winograd_cost, winograd};

std::optional<std::string> winograd_refusal(const ConvPlan& c) {
  const auto is_far = [](const ConvPlan::Pixel& p) {
    return p.lo == Dim(-ConvPlan::kFar) && p.hi == Dim(ConvPlan::kFar);
  };
  constexpr const char* kOther = "the sums are not over channels and 3x3 taps";
  if (c.sums.size() != 3) return kOther;
  if (!(c.pixels[0].extent == Dim(1)) || c.pixels[0].step != 0 || !is_far(c.pixels[0]))
    return "the image has three axes of pixels";
  for (std::size_t a = 1; a < kSpatial; ++a) {
    const ConvPlan::Pixel& p = c.pixels[a];
    const ConvPlan::Sum& s = c.sums[a];
    if (!(s.extent == Dim(3))) return kOther;
    if (p.step > 1) return str_cat("the stride is ", p.step);
    if (!(s.image == p.image) || p.step != s.dilation[a]) return stride_or_dilation(p, s, a);
    if (p.step == 0 && !is_far(p)) return "an axis of one pixel is padded";
    if (c.sums[0].dilation[a] != 0 || s.dilation[0] != 0 || s.dilation[3 - a] != 0)
      return "windows move along several axes at once";
  }
  if (!(c.sums[1].weight == Dim(3)) || !(c.sums[2].weight == Dim(1))) return "the taps of a filter are not contiguous";
  return std::nullopt;
}

i64 winograd_floats(const ConvRun& largest, int workers) {
  Plan n(largest, workers);  // smaller sizes may have larger blocks and keep more filters
  n.tiles = round_up(std::max(kTiles, n.across), largest.t->nr);
  n.keep = n.rows * n.channels <= most_kept(largest.blocking);
  const i64 kept = n.kept_floats(*largest.t);
  n.keep = false;
  return round_up(kept, 16) + workers * (n.image_floats() + n.worker_floats(largest)) + round_up(n.channels, 16);
}

}  // namespace lc::backends::cpu
