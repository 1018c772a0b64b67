// The IDX format: two zero bytes, the type, the number of axes, the extents (u32), the values; all big-endian.
#include "lightcone/io/data/elements.h"
#include "lightcone/io/data/opened.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

using io::ByteStream;
using io::StoredElement;
using Kind = StoredElement::Kind;

StoredElement element(std::byte type, const std::string& path) {
  switch (static_cast<int>(type)) {
    case 0x08: return {Kind::Unsigned, 1, true};
    case 0x09: return {Kind::Signed, 1, true};
    case 0x0B: return {Kind::Signed, 2, true};
    case 0x0C: return {Kind::Signed, 4, true};
    case 0x0D: return {Kind::Float, 4, true};
    case 0x0E: return {Kind::Float, 8, true};
    default: throw file_error("load", path, "IDX has no type ", static_cast<int>(type));
  }
}

Array read_stream(const MappedFile& file, Budget& budget) {
  const auto bytes = file.bytes();
  const std::string& path = file.path();
  const bool packed = bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
  ByteStream stream(bytes, packed ? ByteStream::Packing::Gzip : ByteStream::Packing::None, path);
  std::byte magic[4];
  stream.read(magic);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0})
    throw file_error("load", path, "not an IDX file: it does not begin with two zero bytes");
  const StoredElement stored = element(magic[2], path);
  if (magic[3] == std::byte{0}) throw file_error("load", path, "an IDX file without axes");
  std::vector<std::int64_t> shape(static_cast<std::size_t>(magic[3]));
  for (std::int64_t& extent : shape) {
    std::byte digits[4];
    stream.read(digits);
    for (std::byte d : digits) extent = extent << 8 | static_cast<std::int64_t>(d);
  }
  return io::read_elements(stream, stored, std::move(shape), false, budget);
}

Array to_labels(const Array& stored, std::int64_t classes, const std::string& path, Budget& budget) {
  budget.take(stored.bytes.size(), sizeof(std::int64_t));
  Array labels = Array::zeros(DType::I64, stored.shape);
  for (std::size_t i = 0; i < stored.bytes.size(); ++i) {
    const std::int64_t v = load_i64(stored.bytes.data(), stored.dtype, i);
    if (v >= classes) throw file_error("load", path, "label ", i, " is ", v, ", and there are ", classes, " classes");
    store_i64(labels.bytes.data(), DType::I64, i, v);
  }
  return labels;
}

}  // namespace

Array read_idx(const MappedFile& file, const ReadOptions& o) {
  Budget budget = io::budget_for(file, o);
  return read_stream(file, budget);
}

Array read_idx(const std::string& path, const ReadOptions& o) { return read_idx(*io::opened(path, o), o); }

Dataset read_mnist(const std::string& images, const std::string& labels, std::int64_t classes, const ReadOptions& o) {
  Array image = read_idx(images, o);
  const auto file = io::opened(labels, o);
  Budget budget = io::budget_for(*file, o);
  const Array label = read_stream(*file, budget);
  if (image.dtype != DType::U8 || image.shape.size() != 3)
    throw file_error("load", images, "not images: they are u8 with three axes, this is ", name(image.dtype), " with ",
                     image.shape.size());
  if (label.dtype != DType::U8 || label.shape.size() != 1)
    throw file_error("load", labels, "not labels: they are u8 with one axis, this is ", name(label.dtype), " with ",
                     label.shape.size());
  if (label.rows() != image.rows())
    throw file_error("load", labels, label.rows(), " labels for ", image.rows(), " images");
  Arrays arrays;
  arrays.emplace("label", to_labels(label, classes, labels, budget));
  arrays.emplace("image", std::move(image));
  return Dataset(std::move(arrays));
}

}  // namespace lc
