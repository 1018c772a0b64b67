// Windows of convolutions and pools: an axis that is read at stride * place + dilation * tap - padding.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/stablehlo/write/reading.h"

namespace lc::stablehlo {

struct Window {
  std::size_t axis, place, tap;  // the axis of the operand, and the loops along it
  std::int64_t stride, dilation;
  bool places_reversed, taps_reversed;
  Inside inside;  // the existing part of what the windows read
};

// The end of `inside` is open for an axis that is.

// Returns the windows of a reading whose other axes are plain, or nullopt if an axis is neither or a loop moves along
// two axes. Loops from number `summed` on (of those given to read_in_loops) are the taps. Windows that do not overlap,
// which a reshape could make as well, count if `wanted` returns true for the loop over their places. Axes in `besides`
// are ignored.
std::optional<std::vector<Window>> windows_of(const SizeTable& sizes, const Reading& r, const Loops& loops,
                                              std::size_t summed, const std::function<bool(std::size_t place)>& wanted,
                                              std::span<const std::size_t> besides = {});
// Returns true if a view makes windows.
bool unfolds(const View& v);

}  // namespace lc::stablehlo
