#include "lightcone/io/shape.h"

#include <algorithm>

namespace lc {

std::optional<std::int64_t> io::elements_of(std::span<const std::int64_t> shape) {
  std::int64_t n = 1;
  bool empty = false;
  for (std::int64_t d : shape) {
    empty = empty || d == 0;
    if (d < 0 || __builtin_mul_overflow(n, std::max<std::int64_t>(d, 1), &n)) return std::nullopt;
  }
  return empty ? 0 : n;
}

}  // namespace lc
