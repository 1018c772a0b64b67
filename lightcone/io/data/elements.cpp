#include "lightcone/io/data/elements.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "lightcone/io/printable.h"
#include "lightcone/io/shape.h"

namespace lc::io {
namespace {

using Kind = StoredElement::Kind;

DType dtype_for(const StoredElement& e) {
  switch (e.kind) {
    case Kind::Bool: return DType::Bool;
    case Kind::Float: return e.bytes == 2 ? DType::F16 : e.bytes == 4 ? DType::F32 : DType::F64;
    case Kind::Complex: return e.bytes == 8 ? DType::F32 : DType::F64;
    case Kind::Signed:
      return e.bytes == 1 ? DType::I8 : e.bytes == 2 ? DType::I16 : e.bytes == 4 ? DType::I32 : DType::I64;
    case Kind::Unsigned:
      return e.bytes == 1 ? DType::U8 : e.bytes == 2 ? DType::U16 : e.bytes == 4 ? DType::U32 : DType::U64;
  }
  return DType::F32;
}

void turn_round(std::span<std::byte> bytes, std::size_t width) {
  for (std::size_t at = 0; at < bytes.size(); at += width) std::reverse(bytes.data() + at, bytes.data() + at + width);
}

// Converts elements of `width` bytes from Fortran's to C's order.
std::vector<std::byte> last_axis_fastest(const std::vector<std::byte>& bytes, std::span<const std::int64_t> shape,
                                         std::size_t width) {
  std::vector<std::byte> out(bytes.size());
  std::vector<std::size_t> stride(shape.size()), index(shape.size());
  for (std::size_t axis = 0, step = width; axis < shape.size(); ++axis) {
    stride[axis] = step;
    step *= static_cast<std::size_t>(shape[axis]);
  }
  std::size_t from = 0;
  for (std::size_t at = 0; at < out.size(); at += width) {
    std::memcpy(out.data() + at, bytes.data() + from, width);
    for (std::size_t axis = shape.size(); axis-- > 0;) {  // increments the index like an odometer
      from += stride[axis];
      if (++index[axis] < static_cast<std::size_t>(shape[axis])) break;
      from -= stride[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace

Array read_elements(ByteStream& from, const StoredElement& stored, std::vector<std::int64_t> shape,
                    bool first_axis_fastest, Budget& budget) {
  const std::optional<std::int64_t> n = elements_of(shape);
  std::uint64_t in_file;
  if (!n || __builtin_mul_overflow(static_cast<std::uint64_t>(*n), static_cast<std::uint64_t>(stored.bytes), &in_file))
    throw file_error("load", from.where(), "its shape is larger than any file");
  from.expect_room(in_file, "its shape");
  const DType dtype = dtype_for(stored);
  const std::size_t parts = stored.kind == Kind::Complex ? 2 : 1, width = parts * size_of(dtype),
                    stored_part = static_cast<std::size_t>(stored.bytes) / parts;
  const bool turn = first_axis_fastest && shape.size() > 1;
  budget.take(static_cast<std::size_t>(*n), turn ? 2 * width : width);
  const std::vector<std::int64_t> as_stored = shape;
  if (parts == 2) shape.push_back(2);
  Array a = Array::zeros(dtype, std::move(shape));
  const bool foreign = stored_part > 1 && stored.big_endian != (std::endian::native == std::endian::big);
  from.read(a.bytes);
  if (foreign) turn_round(a.bytes, stored_part);
  from.expect_end();
  if (stored.kind == Kind::Bool)
    for (std::byte& b : a.bytes) b = std::byte{b != std::byte{0}};
  if (turn) a.bytes = last_axis_fastest(a.bytes, as_stored, width);
  return a;
}

}  // namespace lc::io
