// Constants of a model: raw bytes, typed fields, packed integers, and data in files beside the model.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "lightcone/io/printable.h"
#include "lightcone/onnx/model/parser.h"

namespace lc::onnx {
namespace {

struct ElementInfo {
  std::string_view name;
  std::optional<DType> dtype;
  int bits;  // size of an element in raw_data; 0: it has none
};
// In the order of ElementType.
constexpr std::array<ElementInfo, 27> kElements = {{
    {"undefined", {}, 0},       {"float", DType::F32, 32},        {"uint8", DType::U8, 8},
    {"int8", DType::I8, 8},     {"uint16", DType::U16, 16},       {"int16", DType::I16, 16},
    {"int32", DType::I32, 32},  {"int64", DType::I64, 64},        {"string", {}, 0},
    {"bool", DType::Bool, 8},   {"float16", DType::F16, 16},      {"double", DType::F64, 64},
    {"uint32", DType::U32, 32}, {"uint64", DType::U64, 64},       {"complex64", {}, 64},
    {"complex128", {}, 128},    {"bfloat16", DType::BF16, 16},    {"float8e4m3fn", DType::F8E4M3FN, 8},
    {"float8e4m3fnuz", {}, 8},  {"float8e5m2", DType::F8E5M2, 8}, {"float8e5m2fnuz", {}, 8},
    {"uint4", DType::U8, 4},    {"int4", DType::I8, 4},           {"float4e2m1", {}, 4},
    {"float8e8m0", {}, 8},      {"uint2", DType::U8, 2},          {"int2", DType::I8, 2},
}};
const ElementInfo& info(ElementType t) {
  const auto k = static_cast<std::size_t>(t);
  return kElements[k < kElements.size() ? k : 0];
}
bool is_signed(ElementType t) { return t == ElementType::Int4 || t == ElementType::Int2; }

constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

// Unpacks elements of 2 or 4 bits, lowest bits first, to one byte each.
std::vector<std::byte> unpacked(std::span<const std::byte> packed, std::size_t n, int bits, bool with_sign) {
  std::vector<std::byte> r(n);
  const int each = 8 / bits, mask = (1 << bits) - 1, half = 1 << (bits - 1);
  for (std::size_t k = 0; k < n; ++k) {
    const auto byte = std::to_integer<int>(packed[k / static_cast<std::size_t>(each)]);
    int v = (byte >> (bits * static_cast<int>(k % static_cast<std::size_t>(each)))) & mask;
    if (with_sign && v >= half) v -= 2 * half;
    r[k] = static_cast<std::byte>(v);
  }
  return r;
}

// The data fields of a TensorProto. One of them holds the elements.
struct Fields {
  std::vector<std::int64_t> integers = {};  // int32_data, int64_data, uint64_data
  std::vector<float> floats = {};
  std::vector<std::byte> doubles = {};
  std::optional<std::span<const std::byte>> raw = {};
  bool external = false;
};

void hold(TensorData& t, std::vector<std::byte> bytes) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  t.bytes = *owner;
  t.owner = owner;
}

// Converts elements that are listed one by one. Elements of narrow types are bits in int32_data.
std::vector<std::byte> listed(const TensorData& t, const Fields& f, int bits) {
  const std::size_t n = f.integers.size(), size = bits < 8 ? 1 : static_cast<std::size_t>(bits) / 8;
  std::vector<std::byte> r(n * size);
  for (std::size_t k = 0; k < n; ++k)
    std::memcpy(r.data() + k * size, &f.integers[k], size);  // low bytes: the machine is little-endian
  if (bits >= 8) return r;
  return unpacked(r, n * (8 / static_cast<std::size_t>(bits)), bits, is_signed(t.type));  // a byte holds several
}

}  // namespace

std::string_view name(ElementType t) { return info(t).name; }
bool is_packed(ElementType t) { return info(t).dtype && info(t).bits < 8; }
std::optional<DType> dtype_of(ElementType t) { return info(t).dtype; }
ElementType element_type_of(std::int64_t number) {
  const bool known = number >= 0 && number < static_cast<std::int64_t>(kElements.size());
  return known ? static_cast<ElementType>(number) : ElementType::Undefined;
}
ElementType element_type_of(DType t) {
  for (std::size_t k = 0; k < kElements.size(); ++k)
    if (kElements[k].dtype == t && kElements[k].bits >= 8) return static_cast<ElementType>(k);
  return ElementType::Undefined;
}

TensorData Parser::tensor(std::span<const std::byte> message) {
  TensorData t;
  Fields data;
  std::int64_t type = 0;
  std::map<std::string_view, std::string_view> where;
  for (auto f = fields(message); f.next();) {
    switch (f.field()) {
      case 1: append(f, t.shape); break;
      case 2: type = f.integer(), t.type = element_type_of(type); break;
      case 3: f.unknown("a tensor in segments");
      case 4: append(f, data.floats); break;
      case 5:
      case 7:
      case 11: append(f, data.integers); break;
      case 6: t.strings.push_back(bytes_as_text(f.bytes())); break;
      case 8: t.name = f.text(); break;
      case 9: data.raw = f.bytes(); break;
      case 10: {
        const auto b = f.bytes();
        budget_.take(b.size());
        data.doubles.insert(data.doubles.end(), b.begin(), b.end());
        break;
      }
      case 12:
      case 16: break;  // a comment, metadata
      case 13: where.insert(entry(f.bytes())); break;
      case 14: data.external = f.integer() == 1; break;
      default: f.unknown("a tensor");
    }
    budget_.take(16);
  }
  const auto wrong = [&](const auto&... why) {
    return file_error("onnx", file_->path(), "tensor ", in_quotes(t.name), " ", why...);
  };
  const ElementInfo& e = info(t.type);
  if (e.name == "undefined") throw wrong("has element type ", type, ", which is not known");
  std::int64_t n = 1;
  for (const std::int64_t d : t.shape) {
    if (d < 0 || (d > 0 && n > kMostElements / d)) throw wrong("has an impossible shape");
    n *= d;
  }
  const auto count = static_cast<std::size_t>(n);
  if (t.type == ElementType::String) {
    if (t.strings.size() != count) throw wrong("has ", t.strings.size(), " texts, and its shape needs ", count);
    return t;
  }
  const std::size_t bytes = (count * static_cast<std::size_t>(e.bits) + 7) / 8;
  if (data.external) {
    external(t, where, bytes);
  } else if (data.raw) {
    t.bytes = *data.raw;
  } else if (!data.floats.empty()) {
    std::vector<std::byte> b(data.floats.size() * 4);
    std::memcpy(b.data(), data.floats.data(), b.size());
    hold(t, std::move(b));
  } else if (!data.doubles.empty()) {
    hold(t, std::move(data.doubles));
  } else {
    std::vector<std::byte> b = listed(t, data, e.bits);
    if (e.bits < 8) {
      if (b.size() < count) throw wrong("has ", b.size(), " elements, and its shape needs ", count);
      b.resize(count);
      hold(t, std::move(b));
      return t;
    }
    hold(t, std::move(b));
  }
  if (t.bytes.size() != bytes)
    throw wrong("has ", t.bytes.size(), " bytes, and its shape and type ", e.name, " need ", bytes);
  if (e.bits < 8) {
    budget_.parsed(bytes);
    budget_.take(count);
    hold(t, unpacked(t.bytes, count, e.bits, is_signed(t.type)));
  }
  return t;
}

// Maps the file that holds the elements. A model cannot name a file outside its folder.
void Parser::external(TensorData& t, const std::map<std::string_view, std::string_view>& where, std::size_t bytes) {
  namespace fs = std::filesystem;
  const auto wrong = [&](const auto&... why) {
    return file_error("onnx", file_->path(), "tensor ", in_quotes(t.name), " ", why...);
  };
  std::size_t offset = 0, length = bytes;
  std::string location;
  for (const auto& [key, value] : where) {
    if (key == "location") location = value;
    else if (key == "offset" || key == "length") {
      std::size_t& number = key == "offset" ? offset : length;
      const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (failed != std::errc() || end != value.data() + value.size())
        throw wrong("has ", key, " ", in_quotes(value), ", which is no number");
    } else if (key != "checksum" && key != "basepath") {
      throw wrong("has external data with ", in_quotes(key), ", which is not known");
    }
  }
  const fs::path relative(location);
  const bool leaves = relative.empty() || relative.is_absolute() || relative.has_root_name() ||
                      std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; });
  if (leaves) throw wrong("is in the file ", in_quotes(location), ", and external data must lie in the model's folder");
  auto& file = externals_[location];
  if (!file) {
    std::error_code ec;
    const fs::path folder = fs::canonical(fs::path(file_->path()).parent_path() / ".", ec);
    const fs::path target = ec ? fs::path() : fs::canonical(folder / relative, ec);
    if (ec) throw wrong("is in the file ", in_quotes(location), ", which cannot be opened: ", ec.message());
    const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), target.begin(), target.end());
    if (end != folder.end())
      throw wrong("is in the file ", in_quotes(location), ", a link that leaves the model's folder");
    file = options_.map ? MappedFile::open(target.string()) : MappedFile::read(target.string());
  }
  const std::size_t size = file->bytes().size();
  if (length != bytes) throw wrong("has ", length, " bytes of external data, and its shape and type need ", bytes);
  if (offset > size || length > size - offset)
    throw wrong("has its data at ", offset, " to ", offset + length, " of ", in_quotes(location), ", which has ", size,
                " bytes");
  t.bytes = file->bytes().subspan(offset, length);
  t.owner = t.file = file;
}

}  // namespace lc::onnx
