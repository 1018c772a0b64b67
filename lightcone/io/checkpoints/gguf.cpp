#include "lightcone/io/checkpoints/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

using io::elements_of;

constexpr std::size_t kMaxString = 64u << 20, kMaxKey = 65535;
constexpr int kMaxRank = 8;

enum : std::uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };
constexpr std::size_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

template <class T>
T at(std::span<const std::byte> b, std::size_t offset) {
  T v;
  std::memcpy(&v, b.data() + offset, sizeof v);
  return v;
}

class Reader {
 public:
  Reader(const MappedFile& file, Budget& budget) : budget_(budget), b_(file.bytes()), path_(file.path()) {}

  template <class T>
  T number() {
    return at<T>(bytes(sizeof(T)), 0);
  }
  std::string_view string(std::size_t limit = kMaxString) {
    const auto n = number<std::uint64_t>();
    if (n > limit || n > left()) fail("a string of ", n, " bytes where ", left(), " are left");
    const auto s = bytes(n);
    return {reinterpret_cast<const char*>(s.data()), s.size()};
  }
  GgufValue value(std::uint32_t type);
  GgufValue array();
  GgufTensor tensor();
  // Reads a count of items of at least `each` bytes. Throws Error if that many cannot follow.
  std::uint64_t count(std::size_t each, const char* what) {
    const auto n = number<std::uint64_t>();
    if (n > left() / each) fail(n, " ", what, " where ", left(), " bytes are left");
    return n;
  }
  void take(std::size_t n, std::size_t each) { budget_.take(n, each); }
  std::size_t at_byte() const { return at_; }
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    throw file_error("load", path_, "damaged GGUF file: ", what...);
  }

 private:
  std::size_t left() const { return b_.size() - at_; }
  std::span<const std::byte> bytes(std::size_t n) {
    if (n > left()) fail("it ends inside the header");
    at_ += n;
    budget_.parsed(n);
    return b_.subspan(at_ - n, n);
  }
  Budget& budget_;
  std::span<const std::byte> b_;
  const std::string& path_;
  std::size_t at_ = 0;
};

GgufValue Reader::value(std::uint32_t type) {
  switch (type) {
    case U8: return std::int64_t{number<std::uint8_t>()};
    case I8: return std::int64_t{number<std::int8_t>()};
    case U16: return std::int64_t{number<std::uint16_t>()};
    case I16: return std::int64_t{number<std::int16_t>()};
    case U32: return std::int64_t{number<std::uint32_t>()};
    case I32: return std::int64_t{number<std::int32_t>()};
    case U64: return number<std::uint64_t>();
    case I64: return number<std::int64_t>();
    case F32: return static_cast<double>(number<float>());
    case F64: return number<double>();
    case Bool: return number<std::uint8_t>() != 0;
    case String: return string();
    case Array: return array();
    default: fail("a value of the unknown type ", type);
  }
}

GgufValue Reader::array() {
  const auto type = number<std::uint32_t>();
  if (type == Array) fail("nested arrays are not supported");
  if (type >= std::size(kValueBytes)) fail("an array of the unknown type ", type);
  const std::uint64_t n = count(kValueBytes[type], "array elements");
  if (type != String) return GgufNumbers(type, bytes(n * kValueBytes[type]), kValueBytes[type]);
  std::vector<std::string_view> texts;
  for (std::uint64_t i = 0; i < n; ++i) {
    take(2, sizeof(std::string_view));
    texts.push_back(string());
  }
  return texts;
}

GgufTensor Reader::tensor() {
  GgufTensor t;
  t.name = string(kMaxKey);
  const auto rank = number<std::uint32_t>();
  if (rank > kMaxRank) fail("tensor ", in_quotes(t.name), " has ", rank, " dimensions");
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto d = number<std::uint64_t>();
    if (d > std::uint64_t{1} << 48) fail("tensor ", in_quotes(t.name), " is larger than any file");
    t.shape.insert(t.shape.begin(), static_cast<std::int64_t>(d));
  }
  const std::optional<std::int64_t> elements = elements_of(t.shape);
  if (!elements || *elements > std::int64_t{1} << 56) fail("tensor ", in_quotes(t.name), " is larger than any file");
  t.type = number<std::uint32_t>();
  t.offset = number<std::uint64_t>();
  const GgmlType* type = ggml_type(t.type);
  if (!type && was_ggml_type(t.type))
    throw file_error("load", path_, "tensor ", in_quotes(t.name), " has the type ", t.type,
                     ", which ggml has removed: convert the model again");
  if (!type) fail("tensor ", in_quotes(t.name), " has the unknown type ", t.type);
  const auto row = static_cast<std::uint64_t>(rank ? t.shape.back() : 1);
  if (row % static_cast<std::uint64_t>(type->elements) != 0)
    fail("tensor ", in_quotes(t.name), ": rows of ", row, " are not whole ", type->name, " blocks of ", type->elements);
  t.bytes = static_cast<std::uint64_t>(*elements / type->elements) * static_cast<std::uint64_t>(type->bytes);
  return t;
}

// Computes the offsets of the tensors after the aligned header, and checks that they are inside the file and do not
// overlap.
void place(GgufFile& g, const Reader& r, std::size_t size) {
  const std::int64_t wanted = g.integer("general.alignment").value_or(32);
  if (wanted < 1 || wanted > 1 << 20 || !std::has_single_bit(static_cast<std::uint64_t>(wanted)))
    r.fail("an alignment of ", wanted);
  const auto alignment = static_cast<std::uint64_t>(wanted);
  const std::uint64_t data = (g.header_bytes + alignment - 1) / alignment * alignment;
  std::vector<const GgufTensor*> order;
  for (GgufTensor& t : g.tensors) {
    if (t.offset % alignment != 0) r.fail("tensor ", in_quotes(t.name), " is not aligned to ", alignment);
    if (data > size || t.offset > size - data || t.bytes > size - data - t.offset)
      throw file_error("load", g.file->path(), "truncated or damaged: tensor ", in_quotes(t.name), " needs ", t.bytes,
                       " bytes past the end of the file");
    t.offset += data;
    if (t.bytes > 0) order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset)
      r.fail("tensors ", in_quotes(order[i - 1]->name), " and ", in_quotes(order[i]->name), " overlap");
}

}  // namespace

double GgufNumbers::operator[](std::size_t i) const {
  const std::size_t offset = i * each_;
  switch (type_) {
    case U8:
    case Bool: return at<std::uint8_t>(bytes_, offset);
    case I8: return at<std::int8_t>(bytes_, offset);
    case U16: return at<std::uint16_t>(bytes_, offset);
    case I16: return at<std::int16_t>(bytes_, offset);
    case U32: return at<std::uint32_t>(bytes_, offset);
    case I32: return at<std::int32_t>(bytes_, offset);
    case U64: return static_cast<double>(at<std::uint64_t>(bytes_, offset));
    case I64: return static_cast<double>(at<std::int64_t>(bytes_, offset));
    case F32: return static_cast<double>(at<float>(bytes_, offset));
    default: return at<double>(bytes_, offset);
  }
}

bool GgufNumbers::is_float() const { return type_ == F32 || type_ == F64; }

GgufFile read_gguf(const std::string& path, const ReadOptions& o) {
  return read_gguf(o.map ? MappedFile::open(path) : MappedFile::read(path), o);
}

GgufFile read_gguf(std::shared_ptr<const MappedFile> file, const ReadOptions& o) {
  Budget budget(o, file->path());
  return io::read_gguf(std::move(file), budget);
}

GgufFile io::read_gguf(std::shared_ptr<const MappedFile> file, Budget& budget) {
  GgufFile g;
  g.file = file;
  Reader r(*file, budget);
  if (r.number<std::uint32_t>() != 0x46554747) throw file_error("load", file->path(), "this is not a GGUF file");
  g.version = r.number<std::uint32_t>();
  if (g.version != 0 && (g.version & 0xffff) == 0)
    throw file_error("load", file->path(),
                     "a GGUF file for big-endian machines: gguf_convert_endian.py of llama.cpp "
                     "writes it again for this one (little)");
  if (g.version != 2 && g.version != 3)
    throw file_error("load", file->path(), "GGUF version ", g.version, " is not supported (2 and 3 are)");
  const std::uint64_t tensors = r.count(24, "tensors"), values = r.count(13, "metadata values");
  for (std::uint64_t i = 0; i < values; ++i) {
    const std::string_view key = r.string(kMaxKey);
    r.take(1, 224 + key.size());  // a node of the map, and an entry of the list
    const std::size_t begin = r.at_byte();
    if (!g.metadata.emplace(key, r.value(r.number<std::uint32_t>())).second) r.fail(in_quotes(key), " is given twice");
    g.stored.emplace_back(key, file->bytes().subspan(begin, r.at_byte() - begin));
  }
  std::set<std::string_view> names;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    r.take(1, 2 * sizeof(GgufTensor) + 8 * kMaxRank + 64);
    g.tensors.push_back(r.tensor());
    r.take(2, g.tensors.back().name.size());
  }
  for (const GgufTensor& t : g.tensors)
    if (!names.insert(t.name).second) r.fail("two tensors are called ", in_quotes(t.name));
  g.header_bytes = r.at_byte();
  place(g, r, file->bytes().size());
  return g;
}

namespace {

constexpr const char* kKinds[] = {"a whole number", "a whole number",    "a number",       "true or false",
                                  "a text",         "a list of numbers", "a list of texts"};

// Returns the value of a key if it has one of the types Ts, or null if there is none. Throws Error for another type.
template <class... Ts>
const GgufValue* value_of(const GgufFile& g, std::string_view key, const char* kind) {
  const auto it = g.metadata.find(key);
  if (it == g.metadata.end()) return nullptr;
  if (!(std::holds_alternative<Ts>(it->second) || ...))
    throw file_error("load", g.file->path(), in_quotes(key), " is ", kKinds[it->second.index()], ", not ", kind);
  return &it->second;
}

}  // namespace

std::optional<double> GgufFile::number(std::string_view key) const {
  const auto* v = value_of<std::int64_t, std::uint64_t, double>(*this, key, "a number");
  if (!v) return std::nullopt;
  if (const auto* i = std::get_if<std::int64_t>(v)) return static_cast<double>(*i);
  if (const auto* u = std::get_if<std::uint64_t>(v)) return static_cast<double>(*u);
  return std::get<double>(*v);
}
std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const auto* v = value_of<std::int64_t, std::uint64_t>(*this, key, "a whole number");
  if (!v) return std::nullopt;
  if (const auto* i = std::get_if<std::int64_t>(v)) return *i;
  const std::uint64_t u = std::get<std::uint64_t>(*v);
  if (u > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw file_error("load", file->path(), in_quotes(key), " is too large: ", u);
  return static_cast<std::int64_t>(u);
}
std::optional<std::string> GgufFile::text(std::string_view key) const {
  const auto* v = value_of<std::string_view>(*this, key, "a text");
  return v ? std::optional(std::string(std::get<std::string_view>(*v))) : std::nullopt;
}
std::optional<bool> GgufFile::flag(std::string_view key) const {
  const auto* v = value_of<bool>(*this, key, "true or false");
  return v ? std::optional(std::get<bool>(*v)) : std::nullopt;
}
const std::vector<std::string_view>* GgufFile::strings(std::string_view key) const {
  const auto* v = value_of<std::vector<std::string_view>>(*this, key, "a list of texts");
  return v ? &std::get<std::vector<std::string_view>>(*v) : nullptr;
}
const GgufNumbers* GgufFile::numbers(std::string_view key) const {
  const auto* v = value_of<GgufNumbers>(*this, key, "a list of numbers");
  return v ? &std::get<GgufNumbers>(*v) : nullptr;
}

std::string str(const GgufValue& v, std::size_t limit) {
  return std::visit(
      [&]<class T>(const T& x) -> std::string {
        if constexpr (std::is_same_v<T, std::string_view>) return printable(x, limit);
        else if constexpr (std::is_same_v<T, bool>) return x ? "true" : "false";
        else if constexpr (std::is_arithmetic_v<T>) return str_cat(x);
        else {
          std::string s = str_cat(x.size(), " values: ");
          for (std::size_t i = 0; i < std::min<std::size_t>(x.size(), 8); ++i)
            s += str_cat(i ? ", " : "", x[i]).substr(0, limit);
          return printable(s + (x.size() > 8 ? ", ..." : ""), limit);
        }
      },
      v);
}

}  // namespace lc
