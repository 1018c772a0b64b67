#include "lightcone/io/data/array.h"

#include <optional>

#include "lightcone/io/shape.h"

namespace lc {

Array Array::zeros(DType dtype, std::vector<std::int64_t> shape) {
  const std::optional<std::int64_t> n = io::elements_of(shape);
  std::size_t bytes;
  if (!n || __builtin_mul_overflow(static_cast<std::size_t>(*n), size_of(dtype), &bytes) || bytes > PTRDIFF_MAX)
    throw Error("array", "a shape with a negative extent, or larger than any memory");
  Array a;
  a.dtype = dtype;
  a.shape = std::move(shape);
  a.bytes.resize(bytes);
  return a;
}

Array Array::from(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> values) {
  const std::optional<std::int64_t> n = io::elements_of(shape);
  const std::size_t given = values.size() / size_of(dtype);
  if (!n || static_cast<std::size_t>(*n) != given)
    throw Error("array",
                str_cat(given, " values for a shape of ", n ? str_cat(*n) : "no possible number of", " elements"));
  Array a;
  a.dtype = dtype;
  a.shape = std::move(shape);
  a.bytes.assign(values.begin(), values.end());
  return a;
}

std::int64_t Array::elements() const { return static_cast<std::int64_t>(bytes.size() / size_of(dtype)); }

std::int64_t Array::rows() const {
  if (shape.empty()) throw Error("array", "one number, without axes, has no rows");
  return shape[0];
}

std::size_t Array::row_bytes() const {
  std::size_t n = size_of(dtype);
  for (std::size_t axis = 1; axis < shape.size(); ++axis) n *= static_cast<std::size_t>(shape[axis]);
  return n;
}

void Array::expect(DType wanted) const {
  if (dtype != wanted) throw Error("array", str_cat("its elements are ", name(dtype), ", not ", name(wanted)));
}

}  // namespace lc
