#include "lightcone/io/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "lightcone/core/error.h"

namespace lc {
namespace {

constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17}};

constexpr std::size_t kMaxString = 64u << 20, kMaxKey = 65535;

class Reader {
 public:
  Reader(std::span<const std::byte> b, const std::string& path) : b_(b), path_(path) {}

  template <class T>
  T number() {
    T v;
    need(sizeof(T));
    std::memcpy(&v, b_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return v;
  }
  std::string string(std::size_t limit = kMaxString) {
    const auto n = number<std::uint64_t>();
    if (n > limit || n > left()) fail(cat("a string of ", n, " bytes where ", left(), " are left"));
    std::string s(reinterpret_cast<const char*>(b_.data() + at_), n);
    at_ += n;
    return s;
  }
  GgufValue value(std::uint32_t type);
  GgufValue array();
  // A count of things that take at least `each` bytes.
  std::uint64_t count(std::size_t each, const char* what) {
    const auto n = number<std::uint64_t>();
    if (n > left() / each) fail(cat(n, " ", what, " where ", left(), " bytes are left"));
    return n;
  }
  std::size_t at() const { return at_; }
  std::size_t left() const { return b_.size() - at_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error("load", cat(path_, ": damaged GGUF file: ", what));
  }

 private:
  void need(std::size_t n) const {
    if (n > left()) fail("it ends inside the header");
  }
  std::span<const std::byte> b_;
  const std::string& path_;
  std::size_t at_ = 0;
};

enum : std::uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };
constexpr std::size_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

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
    default: fail(cat("a value of the unknown type ", type));
  }
}

GgufValue Reader::array() {
  const auto type = number<std::uint32_t>();
  if (type == Array) fail("nested arrays are not supported");
  if (type >= std::size(kValueBytes)) fail(cat("an array of the unknown type ", type));
  const std::uint64_t n = count(kValueBytes[type], "array elements");
  const auto fill = [&]<class T>(std::vector<T> v, const auto& convert) {
    v.reserve(n);
    for (std::uint64_t i = 0; i < n; ++i) v.push_back(convert(value(type)));
    return GgufValue(std::move(v));
  };
  if (type == String)
    return fill(std::vector<std::string>(), [](GgufValue v) { return std::get<std::string>(std::move(v)); });
  if (type == F32 || type == F64)
    return fill(std::vector<double>(), [](const GgufValue& v) { return std::get<double>(v); });
  return fill(std::vector<std::int64_t>(), [](const GgufValue& v) {
    if (const auto* b = std::get_if<bool>(&v)) return static_cast<std::int64_t>(*b);
    if (const auto* u = std::get_if<std::uint64_t>(&v)) return static_cast<std::int64_t>(*u);
    return std::get<std::int64_t>(v);
  });
}

GgufTensor tensor_info(Reader& r) {
  GgufTensor t;
  t.name = r.string(kMaxKey);
  const auto rank = r.number<std::uint32_t>();
  if (rank > 8) r.fail(cat("tensor '", t.name, "' has ", rank, " dimensions"));
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto d = r.number<std::uint64_t>();
    if (d > std::uint64_t{1} << 48 || __builtin_mul_overflow(elements, d, &elements) ||
        elements > std::uint64_t{1} << 56)
      r.fail(cat("tensor '", t.name, "' is larger than any file"));
    t.shape.insert(t.shape.begin(), static_cast<std::int64_t>(d));
  }
  t.type = r.number<std::uint32_t>();
  t.offset = r.number<std::uint64_t>();
  const GgmlType* type = ggml_type(t.type);
  if (!type) r.fail(cat("tensor '", t.name, "' has the unknown type ", t.type));
  const auto row = static_cast<std::uint64_t>(rank ? t.shape.back() : 1);
  if (row % static_cast<std::uint64_t>(type->elements) != 0)
    r.fail(cat("tensor '", t.name, "': rows of ", row, " are not whole ", type->name, " blocks of ", type->elements));
  t.bytes = elements / static_cast<std::uint64_t>(type->elements) * static_cast<std::uint64_t>(type->bytes);
  return t;
}

// Puts the tensors behind the aligned header and checks that they lie inside the file and apart.
void place(GgufFile& g, const Reader& r, std::size_t size) {
  const double wanted = g.number("general.alignment").value_or(32);
  if (!(wanted >= 1 && wanted <= 1 << 20) || !std::has_single_bit(static_cast<std::uint64_t>(wanted)))
    r.fail(cat("an alignment of ", wanted));
  const auto alignment = static_cast<std::uint64_t>(wanted);
  const std::uint64_t data = (r.at() + alignment - 1) / alignment * alignment;
  std::vector<const GgufTensor*> order;
  for (GgufTensor& t : g.tensors) {
    if (t.offset % alignment != 0) r.fail(cat("tensor '", t.name, "' is not aligned to ", alignment));
    if (data > size || t.offset > size - data || t.bytes > size - data - t.offset)
      throw Error("load", cat(g.file->path(), ": truncated or damaged: tensor '", t.name, "' needs ", t.bytes,
                              " bytes past the end of the file"));
    t.offset += data;
    if (t.bytes > 0) order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset)
      r.fail(cat("tensors '", order[i - 1]->name, "' and '", order[i]->name, "' overlap"));
}

}  // namespace

const GgmlType* ggml_type(std::uint32_t type) {
  const auto it = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const GgmlType& t) { return t.type == type; });
  return it == std::end(kTypes) ? nullptr : it;
}
std::string_view ggml_type_name(std::uint32_t type) {
  const GgmlType* t = ggml_type(type);
  return t ? t->name : "?";
}

GgufFile read_gguf(const std::string& path) { return read_gguf(MappedFile::open(path)); }

GgufFile read_gguf(std::shared_ptr<const MappedFile> file) {
  GgufFile g;
  g.file = file;
  Reader r(file->bytes(), file->path());
  if (r.number<std::uint32_t>() != 0x46554747) throw Error("load", cat(file->path(), " is not a GGUF file"));
  g.version = r.number<std::uint32_t>();
  if (g.version != 2 && g.version != 3)
    throw Error("load", cat(file->path(), ": GGUF version ", g.version, " is not supported (2 and 3 are)"));
  const std::uint64_t tensors = r.count(24, "tensors"), values = r.count(13, "metadata values");
  for (std::uint64_t i = 0; i < values; ++i) {
    const std::string key = r.string(kMaxKey);
    if (!g.metadata.emplace(key, r.value(r.number<std::uint32_t>())).second) r.fail(cat("'", key, "' is given twice"));
  }
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    g.tensors.push_back(tensor_info(r));
    if (!names.insert(g.tensors.back().name).second)
      r.fail(cat("two tensors are called '", g.tensors.back().name, "'"));
  }
  place(g, r, file->bytes().size());
  return g;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const auto it = metadata.find(key);
  if (it == metadata.end()) return std::nullopt;
  if (const auto* v = std::get_if<std::int64_t>(&it->second)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<std::uint64_t>(&it->second)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<double>(&it->second)) return *v;
  return std::nullopt;
}
std::optional<std::string> GgufFile::text(std::string_view key) const {
  const auto it = metadata.find(key);
  const auto* v = it == metadata.end() ? nullptr : std::get_if<std::string>(&it->second);
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<bool> GgufFile::flag(std::string_view key) const {
  const auto it = metadata.find(key);
  const auto* v = it == metadata.end() ? nullptr : std::get_if<bool>(&it->second);
  return v ? std::optional(*v) : std::nullopt;
}
const std::vector<std::string>* GgufFile::strings(std::string_view key) const {
  const auto it = metadata.find(key);
  return it == metadata.end() ? nullptr : std::get_if<std::vector<std::string>>(&it->second);
}
std::vector<double> GgufFile::numbers(std::string_view key) const {
  const auto it = metadata.find(key);
  if (it == metadata.end()) return {};
  if (const auto* v = std::get_if<std::vector<double>>(&it->second)) return *v;
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&it->second)) return {v->begin(), v->end()};
  return {};
}

std::string str(const GgufValue& v, std::size_t limit) {
  const auto shorten = [&](std::string s) {
    if (s.size() > limit) {
      s.resize(limit);
      while (!s.empty() && (static_cast<unsigned char>(s.back()) & 0xC0) == 0x80) s.pop_back();
      if (!s.empty() && static_cast<unsigned char>(s.back()) >= 0xC0) s.pop_back();
      s += "...";
    }
    std::replace_if(
        s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
    return s;
  };
  return std::visit(
      [&]<class T>(const T& x) -> std::string {
        if constexpr (std::is_same_v<T, std::string>) return shorten(x);
        else if constexpr (std::is_same_v<T, bool>) return x ? "true" : "false";
        else if constexpr (std::is_arithmetic_v<T>) return cat(x);
        else {
          std::string s = cat(x.size(), " values: ");
          for (std::size_t i = 0; i < std::min<std::size_t>(x.size(), 8); ++i) s += cat(i ? ", " : "", x[i]);
          return shorten(s + (x.size() > 8 ? ", ..." : ""));
        }
      },
      v);
}

}  // namespace lc
