#include "lightcone/stablehlo/write/windows.h"

#include <algorithm>
#include <cstdlib>

namespace lc::stablehlo {
namespace {

// Adds the padding of windows over an open axis: the places must be as many as the padded axis has.
bool pad_open(const SizeTable& sizes, const AxisReading& a, const Loops& loops, Window& w) {
  if (is_open(loops.extents[w.tap])) return false;
  const std::int64_t reach = w.dilation * (loops.extents[w.tap] - 1), low = -a.offset;
  const Dim extent = sizes.dim(a.extent), places = sizes.dim(loops.extents[w.place]);
  for (std::int64_t high = 0; high <= reach; ++high)
    if (places == (extent + (low + high - reach - 1)) / Dim(w.stride) + 1) {
      w.inside = {0, a.extent, low, high};
      return true;
    }
  return false;
}

std::optional<Window> window_of(const SizeTable& sizes, const Reading& r, std::size_t axis, const Loops& loops,
                                std::size_t summed) {
  const AxisReading& a = r.axes[axis];
  const auto by = a.loops();
  if (by.size() != 2 || (is_open(a.extent) && !a.windows)) return std::nullopt;
  const bool first_is_tap = loops.from[by[0]] >= summed, second_is_tap = loops.from[by[1]] >= summed;
  if (first_is_tap == second_is_tap) return std::nullopt;
  const std::size_t tap = by[first_is_tap ? 0 : 1], place = by[first_is_tap ? 1 : 0];
  Window w{axis, place, tap, std::abs(a.step[place]), std::abs(a.step[tap]), a.step[place] < 0, a.step[tap] < 0, {}};
  if (a.windows) return pad_open(sizes, a, loops, w) ? std::optional(w) : std::nullopt;
  std::int64_t start = a.offset, reach = 1;
  for (const std::size_t k : by) {
    const std::int64_t span = a.step[k] * (loops.extents[k] - 1);
    start += std::min<std::int64_t>(span, 0), reach += std::abs(span);
  }
  w.inside = inside(a, start, start + reach);
  return w;
}

}  // namespace

std::optional<std::vector<Window>> windows_of(const SizeTable& sizes, const Reading& r, const Loops& loops,
                                              std::size_t summed, const std::function<bool(std::size_t place)>& wanted,
                                              std::span<const std::size_t> besides) {
  std::vector<Window> all;
  for (std::size_t i = 0; i < r.axes.size(); ++i) {
    if (std::ranges::find(besides, i) != besides.end()) continue;
    const bool plain = is_plain(r.axes[i], loops);
    const auto w = window_of(sizes, r, i, loops, summed);
    if (w && (!plain || wanted(w->place))) all.push_back(*w);
    else if (!plain) return std::nullopt;
  }
  auto moving = r.loops();
  std::ranges::sort(moving);
  if (std::ranges::adjacent_find(moving) != moving.end()) return std::nullopt;
  return all;
}

bool unfolds(const View& v) {
  return std::ranges::any_of(v.moves(), [](const Move& m) { return m.kind == MoveKind::Unfold; });
}

}  // namespace lc::stablehlo
