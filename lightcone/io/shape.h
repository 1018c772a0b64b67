// Checks of shapes that a file states.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace lc::io {

// Returns the number of elements of a shape; nullopt if an extent is negative, or if the product of the extents is
// larger than any memory, even if one of them is 0.
std::optional<std::int64_t> elements_of(std::span<const std::int64_t> shape);

}  // namespace lc::io
