// The safetensors format: u64 header length, a JSON header, the data. The checks are those of the format: offsets begin
// at 0, are contiguous without holes or overlaps, and end with the file.
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

using io::Json;
using io::JsonDocument;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit

struct TypeRow {
  std::string_view name;
  std::size_t bits;
  std::optional<DType> dtype;
};
constexpr TypeRow kTypes[] = {{"F64", 64, DType::F64},   {"F32", 32, DType::F32},         {"F16", 16, DType::F16},
                              {"BF16", 16, DType::BF16}, {"I64", 64, DType::I64},         {"I32", 32, DType::I32},
                              {"U8", 8, DType::U8},      {"BOOL", 8, DType::Bool},        {"I16", 16, DType::I16},
                              {"I8", 8, DType::I8},      {"U16", 16, DType::U16},         {"U32", 32, DType::U32},
                              {"U64", 64, DType::U64},   {"F8_E4M3", 8, DType::F8E4M3FN}, {"F8_E5M2", 8, DType::F8E5M2},
                              {"C64", 64, std::nullopt}};

struct Span {
  std::uint64_t begin, end;
  std::string_view name;  // in the header
};

// Returns a non-negative integer below 2^63. Throws Error for another value.
std::uint64_t whole(const Json& j, const std::string& file, const std::string& what) {
  const std::optional<std::int64_t> v = j.integer();
  if (j.is(Json::Kind::TooLarge)) throw file_error("load", file, what, " is too large");
  if (!v || *v < 0) throw file_error("load", file, what, " is not a whole number");
  return static_cast<std::uint64_t>(*v);
}

}  // namespace

class SafetensorsReader {
 public:
  SafetensorsReader(Weights& w, Budget& budget) : w_(w), budget_(budget) {}
  void add(const std::shared_ptr<const MappedFile>& file);

 private:
  void metadata(const Json& j, const std::string& path);
  Span tensor(std::string_view name, const Json& entry, const MappedFile& file, std::uint64_t data);
  Weights& w_;
  Budget& budget_;
};

Span SafetensorsReader::tensor(std::string_view name, const Json& entry, const MappedFile& file, std::uint64_t data) {
  const std::string& path = file.path();
  const std::string where = str_cat("tensor ", in_quotes(name));
  const Json type = entry["dtype"], shape = entry["shape"], offsets = entry["data_offsets"];
  if (entry.size() != 3 || !type.is(Json::Kind::String) || !shape.is(Json::Kind::Array) || offsets.size() != 2 ||
      !offsets.is(Json::Kind::Array))
    throw file_error("load", path, where, " needs dtype, shape and two data_offsets");
  const auto row =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) { return r.name == type.text(); });
  if (row == std::end(kTypes)) throw file_error("load", path, where, " has the unknown dtype ", in_quotes(type.text()));
  if (shape.size() > 64) throw file_error("load", path, where, " has ", shape.size(), " axes");
  io::take_tensor(budget_, 2 * name.size(), shape.size());
  StoredTensor t{.shape = {}, .type = std::string(row->name), .bytes = {}, .dtype = row->dtype};
  for (const auto& [unnamed, extent] : shape)
    t.shape.push_back(static_cast<std::int64_t>(whole(extent, path, where + ": an extent")));
  const std::optional<std::int64_t> elements = io::elements_of(t.shape);
  if (!elements || static_cast<std::uint64_t>(*elements) > std::numeric_limits<std::uint64_t>::max() / row->bits)
    throw file_error("load", path, where, " is larger than any file");
  const std::uint64_t begin = whole(offsets[0], path, where + ": an offset"),
                      end = whole(offsets[1], path, where + ": an offset"), room = file.bytes().size() - data,
                      bits = static_cast<std::uint64_t>(*elements) * row->bits;
  if (begin > end || end > room)
    throw file_error("load", path, where, " lies outside the file: bytes ", begin, " to ", end, " of ", room);
  if (bits % 8 != 0 || end - begin != bits / 8)
    throw file_error("load", path, where, " has ", end - begin, " bytes, its shape needs ", bits / 8);
  t.bytes = file.bytes().subspan(data + begin, end - begin);
  if (!w_.tensors_.emplace(name, std::move(t)).second)
    throw file_error("load", path, where, " is there twice, in this file or in another shard");
  return {begin, end, name};
}

void SafetensorsReader::metadata(const Json& j, const std::string& path) {
  if (!j.is(Json::Kind::Object)) throw file_error("load", path, "__metadata__ is not an object");
  std::set<std::string_view> names;
  for (const auto& [key, value] : j) {
    if (!value.is(Json::Kind::String))
      throw file_error("load", path, "the metadata ", in_quotes(key), " is not a string");
    if (!names.insert(key).second) throw file_error("load", path, "the header names ", in_quotes(key), " twice");
    budget_.take(160 + key.size() + value.text().size());
    w_.metadata_[std::string(key)] = value.text();
  }
}

void SafetensorsReader::add(const std::shared_ptr<const MappedFile>& file) {
  const auto bytes = file->bytes();
  const std::string& path = file->path();
  std::uint64_t length = 0;
  const std::string other = io::looks_like_safetensors(bytes) ? "" : io::foreign_format(bytes);
  if (!other.empty()) throw file_error("load", path, other);
  if (bytes.size() < 8) throw file_error("load", path, "too short for a safetensors file");
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMaxHeader || length > bytes.size() - 8)
    throw file_error("load", path, "not a safetensors file, or a truncated one: a header of ", length,
                     " bytes in a file of ", bytes.size());
  const JsonDocument header({reinterpret_cast<const char*>(bytes.data()) + 8, length}, path, budget_);
  if (!header.root().is(Json::Kind::Object)) throw file_error("load", path, "the safetensors header is not an object");
  const std::uint64_t data = 8 + length;
  std::vector<Span> spans;
  bool described = false;
  for (const auto& [name, entry] : header.root()) {
    if (name == "__metadata__") {
      if (described) throw file_error("load", path, "the header names '__metadata__' twice");
      described = true;
      metadata(entry, path);
    } else {
      budget_.take(2, sizeof(Span));
      spans.push_back(tensor(name, entry, *file, data));
    }
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t at = 0;
  for (const Span& s : spans) {
    if (s.begin != at)
      throw file_error("load", path, "tensor ", in_quotes(s.name),
                       s.begin < at ? " overlaps another" : " follows a hole");
    at = s.end;
  }
  if (at != bytes.size() - data) throw file_error("load", path, bytes.size() - data - at, " bytes belong to no tensor");
  w_.format_ = "safetensors";
  w_.files_.push_back(file);
}

namespace io {

bool looks_like_safetensors(std::span<const std::byte> b) { return b.size() > 8 && b[8] == std::byte{'{'}; }

void add_safetensors(Weights& w, const std::shared_ptr<const MappedFile>& file, Budget& budget) {
  SafetensorsReader(w, budget).add(file);
}

}  // namespace io

}  // namespace lc
