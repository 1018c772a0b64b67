// Tiles of channels-last convolutions: how taps are divided into blocks, and a run into tasks.
#include <algorithm>
#include <utility>

#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/loops/epilogue.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kStep = 128;         // taps added before a tile is stored: their weights stay in L1
constexpr i64 kFewest = 48;        // pixels that a task may always have, however long they are
constexpr i64 kChunk = 4;          // panels after which the epilogue runs, while they are in the cache
constexpr i64 kWeights = 16;       // cycles per tap and panel for a task's weights
constexpr i64 kTileTaskCost = 20;  // overhead of a task, in cycles per tap
constexpr i64 kRounds = 4;         // rounds beyond the fewest that are tried, with smaller tasks

}  // namespace

NhwcTiles::NhwcTiles(std::vector<NhwcShape::Sum> sums, i64 rows, int mr, int nr, decltype(NhwcTable::tile) tile)
    : rows_(rows), mr_(mr), nr_(nr), tile_(tile) {
  for (const auto& s : sums) depth_ *= s.extent;
  find_runs(std::move(sums));
}

// Collects contiguous taps into runs, each within one block. Blocks affect the bits of results, so they depend on the
// shape alone.
void NhwcTiles::find_runs(std::vector<NhwcShape::Sum> sums) {
  i64 length = 1;
  while (!sums.empty() && sums.back().read == length) length *= sums.back().extent, sums.pop_back();
  i64 count = 1;
  for (const auto& s : sums) count *= s.extent;
  const i64 pieces = ceil_div(length, kStep), piece = ceil_div(length, pieces);
  for (i64 n = 0; n < count; ++n) {
    i64 at = 0, rest = n;
    for (std::size_t i = sums.size(); i-- > 0; rest /= sums[i].extent) at += rest % sums[i].extent * sums[i].read;
    for (i64 k = 0; k < length; k += piece) {
      const i64 some = std::min(piece, length - k);
      if (blocks_.empty() || blocks_.back().depth + some > kStep)
        blocks_.push_back({runs_.size(), 0, n * length + k, 0});
      runs_.push_back({at + k, some});
      ++blocks_.back().count, blocks_.back().depth += some;
    }
  }
}

i64 NhwcTiles::most_pixels(i64 most) { return std::clamp<i64>(most, kFewest, kPixels); }

// Minimizes the time in cycles of a core that multiplies two vectors per cycle.
NhwcTiles::Split NhwcTiles::split(i64 pixels, i64 most, int workers) const {
  const i64 all = ceil_div(rows_, nr_), fewest = ceil_div(pixels, most_pixels(most));
  const i64 vectors = 2;  // half of a tile's vectors: cycles per pixel
  Split best;
  i64 least = 0;
  for (i64 pieces = 1; pieces <= std::min<i64>(all, 4 * workers); ++pieces) {
    const i64 height = ceil_div(all, pieces), across = ceil_div(all, height),
              rounds = ceil_div(fewest * across, workers);
    for (i64 r = rounds; r < rounds + kRounds; ++r) {  // the smallest tasks that finish in r rounds
      const i64 n = ceil_div(pixels, std::clamp(r * workers / across, fewest, pixels)),
                tasks = ceil_div(pixels, n) * across;
      const i64 cost = ceil_div(tasks, workers) * (height * (n * vectors + kWeights) + kTileTaskCost);
      if (least > 0 && cost >= least) continue;
      least = cost, best = {n, height, across, tasks};
    }
  }
  return best;
}

// Computes one block of taps of a panel.
void NhwcTiles::block(Job& j, const Block& b, i64 panel, bool first) const {
  const i64 tiles = ceil_div(j.count, mr_), columns = std::min<i64>(nr_, rows_ - panel * nr_);
  const i64 number = widen_ ? 2 : 4;  // bytes
  const std::byte* stored = j.weights + (panel * depth_ + b.begin) * nr_ * number;
  const auto* behind = reinterpret_cast<const float*>(stored + b.depth * nr_ * number);  // the next block is as long
  const auto* w = reinterpret_cast<const float*>(stored);
  if (widen_) {
    widen_(reinterpret_cast<const std::uint16_t*>(stored), b.depth * nr_, j.widened);
    w = j.widened;
  }
  for (i64 i = 0; i < tiles; ++i) {
    const i64 q = j.count * i / tiles, rows = j.count * (i + 1) / tiles - q, to = q * rows_ + panel * nr_;
    float* sums = j.sums + q * j.sums_row + panel * nr_;
    const float* next = w;
    if (i * 64 < nr_ * number) next = behind + i * 16 * b.depth;
    else if (j.soon < j.soon_end) next = std::exchange(j.soon, j.soon + 16 * b.depth);
    else if (b.begin == 0 && first) next = j.at[std::min(q + 2 * mr_, j.count - 1)];
    // Rows of the result are too far apart for hardware prefetchers.
    for (i64 r = 0; b.begin == 0 && r < rows; ++r)
      for (i64 c = 0; c < columns; c += 16) {
        __builtin_prefetch(j.result + (to + r * rows_ + c) * j.number, 1, 2);
        if (j.beside) __builtin_prefetch(j.beside + to + r * rows_ + c, 0, 2);
      }
    tile_(j.at + q, runs_.data() + b.first, static_cast<i64>(b.count), w, next, sums, j.sums_row, rows, columns,
          b.begin > 0);
  }
}

i64 NhwcTiles::apart_floats(i64 pixels) const { return pixels * kChunk * nr_; }

void NhwcTiles::run(const HostLaunch& l, const float* const* at, const Epilogue* epilogue, const i64* sizes, i64 first,
                    i64 count, i64 begin, i64 end, std::span<const float> soon, float* apart) const {
  const i64 number = apart ? 2 : 4;
  alignas(64) float widened[kStep * NhwcTable::kMostNr];
  Job j{.at = at,
        .weights = static_cast<const std::byte*>(l.in[1]),
        .widened = widened,
        .result = static_cast<std::byte*>(l.out) + first * rows_ * number,
        .number = number,
        .beside = nullptr,
        .sums = static_cast<float*>(l.out) + first * rows_,
        .sums_row = apart ? kChunk * nr_ : rows_,
        .count = count,
        .soon = soon.data(),
        .soon_end = soon.data() + soon.size()};
  if (epilogue && epilogue->largest() >= 0)  // a residual
    j.beside = static_cast<const float*>(l.in[2 + static_cast<std::size_t>(epilogue->largest())]) + first * rows_;
  end = std::min(end, ceil_div(rows_, nr_));
  for (i64 p = begin; p < end; p += kChunk) {
    const i64 last = std::min(p + kChunk, end), columns = std::min(last * nr_, rows_);
    if (apart) j.sums = apart - p * nr_;
    for (i64 panel = p; panel < last; ++panel)
      for (const Block& b : blocks_) block(j, b, panel, panel == p);
    if (apart) epilogue->run_apart(l.in.data() + 2, apart, j.sums_row, l.out, sizes, first, count, p * nr_, columns);
    else if (epilogue)
      epilogue->run(l.in.data() + 2, static_cast<float*>(l.out), sizes, first, count, p * nr_, columns);
  }
}

}  // namespace lc::backends::cpu
