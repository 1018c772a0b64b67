// Shapes that a file states.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace lc::io {

// How many elements a shape has; nothing when an extent is negative, or when its extents together are larger than any
// memory, even where one is 0.
std::optional<std::int64_t> elements_of(std::span<const std::int64_t> shape);

}  // namespace lc::io
