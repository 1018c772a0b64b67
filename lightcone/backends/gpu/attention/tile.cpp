#include "lightcone/backends/gpu/attention/tile.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace lc::backends::gpu {
namespace {

using lowering::Attention;

int head(const Dim& d) { return static_cast<int>(*d.constant()); }

// Returns how many elements along an axis of this stride are read at once: at most `most`, and a divisor of all
// `multiples`, the parts of an address.
int vector_width(std::int64_t most, const Dim& stride, std::span<const Dim> multiples) {
  std::int64_t n = stride == Dim(1) ? most : 1;
  while (n > 1 && !std::ranges::all_of(multiples, [&](const Dim& d) { return d % Dim(n) == Dim(0); })) n /= 2;
  return static_cast<int>(n);
}

// Includes a table of longs for each row: where its query, its result and the operands of its steps begin.
std::int64_t shared_bytes(const Attention& a, const AttentionTile& t, int warp) {
  const int depth = t.depth(head(a.layout.depth));
  const std::int64_t numbers = t.cores ? t.rows * (depth + kCorePad) + t.chunk()
                                       : depth * t.rows + t.chunk() + t.keys * t.weight_pitch() +
                                             t.rows * (t.parts(warp) + (t.parts(warp) > 16 ? 16 : 0));
  std::int64_t masks = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(a.scores.steps); ++s)
    if (const int n = mask_vector(a, s); n > 1) masks += t.rows * t.keys / n * 2;
  return numbers * (t.cores ? 2 : 4) + masks + t.rows * 8 * (2 + a.scores.steps) + 64;
}

std::optional<AttentionTile> fitted(const Attention& a, const AttentionTarget& target, int rows, int keys, int teams,
                                    int lanes) {
  const int depth = head(a.layout.depth), width = head(a.layout.width);
  AttentionTile t{rows, keys, teams, lanes, 0, (width + lanes - 1) / lanes, keys};
  const int steps = (depth + kStep - 1) / kStep;
  t.step = round_up((depth + steps - 1) / steps, depth % 16 == 0 ? 16 : depth % 4 == 0 ? 4 : 1);
  if (t.columns > 2) t.columns = round_up(t.columns, 4);
  while (t.span > 1 && t.span * t.columns * t.lanes > t.chunk()) t.span /= 2;
  const bool fits = shared_bytes(a, t, target.warp) <= std::min(target.shared, kStaticShared);
  if (!fits || t.threads() > target.threads || t.threads() % target.warp != 0) return std::nullopt;
  return t;
}

}  // namespace

int key_vector(const Attention& a, const AttentionTile& t) {
  std::vector<Dim> multiples = {a.layout.depth, Dim(t.step), a.layout.k_at, a.layout.k_key};
  for (int i = 0; i < a.batches; ++i) multiples.push_back(a.layout.axis[i].k);
  return vector_width(16 / cache_bytes(a.scores.k_type), a.layout.k_depth, multiples);
}

int value_vector(const Attention& a, const AttentionTile& t) {
  std::vector<Dim> multiples = {a.layout.width, Dim(t.columns * t.lanes), a.layout.v_at, a.layout.v_key};
  for (int i = 0; i < a.batches; ++i) multiples.push_back(a.layout.axis[i].v);
  return vector_width(16 / cache_bytes(a.scores.v_type), a.layout.v_width, multiples);
}

int mask_vector(const Attention& a, std::size_t step) {
  if (a.scores.step[step].kind != lowering::AttentionStep::Mask) return 1;
  std::vector<Dim> multiples = {a.layout.keys, a.layout.step_at[step]};
  for (const auto& axis : a.layout.axis) multiples.push_back(axis.step[step]);
  const int n = vector_width(16, a.layout.step_key[step], multiples);
  return n < 4 ? 1 : n;
}

int AttentionTile::chunk() const {
  if (cores) return keys * (std::max(core_depth, columns * lanes) + kCorePad);
  return std::max(step * pitch(), std::min(keys, 8) * columns * lanes);
}
int AttentionTile::parts(int warp) const { return lanes > warp ? lanes / warp : 1; }

// A warp has 16 rows, and sizes are padded to those of an instruction.
std::optional<AttentionTile> tile_of_cores(const Attention& a, const AttentionTarget& target) {
  const int depth = round_up(head(a.layout.depth), 16), width = round_up(head(a.layout.width), 16);
  for (const auto& [rows, keys] : {std::pair{64, 64}, {64, 32}, {32, 32}}) {
    AttentionTile t{rows, keys, rows / 2, 4, 16, width / 4, keys, true, depth};
    if (shared_bytes(a, t, target.warp) <= std::min(target.shared, kStaticShared)) return t;
  }
  return std::nullopt;
}

std::optional<AttentionTile> tile_of_many_rows(const Attention& a, const AttentionTarget& target) {
  if (target.cores)
    if (const auto t = tile_of_cores(a, target)) return t;
  struct Shape {
    int rows, keys, teams;
  };
  for (const Shape s : {Shape{64, 64, 16}, {32, 64, 8}, {32, 32, 8}, {16, 32, 4}, {16, 16, 4}, {8, 16, 2}})
    if (const auto t = fitted(a, target, s.rows, s.keys, s.teams, 16)) return t;
  return std::nullopt;
}

std::optional<AttentionTile> tile_of_few_rows(const Attention& a, const AttentionTarget& target) {
  constexpr int kThreads = 128;
  const int width = head(a.layout.width), lanes = width > 64 ? 128 : width > 32 ? 64 : 32;
  const auto least = static_cast<unsigned>(std::clamp<std::int64_t>(rows_of(a).bounds().lo, 1, 16));
  for (int rows = static_cast<int>(std::bit_ceil(least)); rows > 0; rows /= 2)
    for (int l = lanes; l >= 32; l /= 2)
      for (int keys = 128; keys >= l; keys /= 2)
        if (const auto t = fitted(a, target, rows, keys, std::min(rows, kThreads / l), l)) return t;
  return std::nullopt;
}

Dim rows_of(const Attention& a) {
  Dim n = 1;
  for (int i = a.batches; i < a.axes; ++i) n = n * a.layout.axis[i].extent;
  return n;
}
Dim batches_of(const Attention& a) {
  Dim n = 1;
  for (int i = 0; i < a.batches; ++i) n = n * a.layout.axis[i].extent;
  return n;
}

KeySplits split_keys(std::int64_t keys, const AttentionTile& tile) {
  const std::int64_t most = std::clamp<std::int64_t>(keys / kSplitKeys, 1, kMostSplits);
  const std::int64_t tiles = (keys + tile.keys - 1) / tile.keys;
  const std::int64_t stretch = (tiles + most - 1) / most * tile.keys;
  return {stretch, (keys + stretch - 1) / stretch};
}

}  // namespace lc::backends::gpu
