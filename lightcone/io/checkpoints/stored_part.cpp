#include "lightcone/io/checkpoints/stored_part.h"

#include <cstring>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/core/dim.h"

namespace lc {

StoredPart part_of(const StoredTensor& whole, int axis, int parts, int place) {
  if (!whole.dtype && !whole.quant) {
    const auto values = std::make_shared<const std::vector<float>>(Weights::read(whole));
    StoredPart p = part_of({whole.shape, "F32", std::as_bytes(std::span(*values)), DType::F32}, axis, parts, place);
    if (!p.copy) p.copy = values;
    return p;
  }
  const ArrayView array = whole;
  const auto at = static_cast<std::size_t>(axis);
  const auto wrong = [&](const std::string& what) {
    return Error("part_of", str_cat("a tensor of ", str(Shape(whole.shape.begin(), whole.shape.end())), " (",
                                    whole.type, ") has no axis ", axis, " of ", parts, " equal parts", what));
  };
  if (axis < 0 || at >= array.shape.size() || parts < 1 || place < 0 || place >= parts || array.shape[at] % parts != 0)
    throw wrong("");
  std::size_t inner = size_of(array.dtype);  // bytes of one step along the axis
  for (std::size_t k = at + 1; k < array.shape.size(); ++k) inner *= static_cast<std::size_t>(array.shape[k]);
  const std::int64_t n = array.shape[at] / parts;
  const bool of_blocks = whole.quant && at + 1 == array.shape.size();
  if (of_blocks && n % info(*whole.quant).bytes != 0) throw wrong(" of whole blocks");
  const std::size_t piece = inner * static_cast<std::size_t>(n), row = piece * static_cast<std::size_t>(parts),
                    first = piece * static_cast<std::size_t>(place), rows = row ? array.bytes.size() / row : 0;
  StoredPart p{whole};
  p.tensor.shape[at] /= parts;
  if (rows <= 1) {
    p.tensor.bytes = whole.bytes.subspan(rows ? first : 0, rows ? piece : 0);
    return p;
  }
  const auto copy = std::make_shared<std::vector<std::byte>>(rows * piece);
  for (std::size_t r = 0; r < rows; ++r)
    std::memcpy(copy->data() + r * piece, whole.bytes.data() + r * row + first, piece);
  p.tensor.bytes = *copy, p.copy = copy;
  return p;
}

}  // namespace lc
