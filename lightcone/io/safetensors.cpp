// The safetensors format: u64 header length, a JSON header, the data. The rules are the format's
// own: offsets start at 0, follow each other without holes or overlaps and end with the file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "lightcone/core/error.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/weights.h"
#include "lightcone/io/weights_internal.h"

namespace lc {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit

struct TypeRow {
  std::string_view name;
  std::size_t bits;
  std::optional<DType> dtype;
};
constexpr TypeRow kTypes[] = {
    {"F64", 64, DType::F64},   {"F32", 32, DType::F32},      {"F16", 16, DType::F16},      {"BF16", 16, DType::BF16},
    {"I64", 64, DType::I64},   {"I32", 32, DType::I32},      {"U8", 8, DType::U8},         {"BOOL", 8, DType::Bool},
    {"I16", 16, std::nullopt}, {"I8", 8, DType::I8},         {"U16", 16, std::nullopt},    {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt}, {"F8_E4M3", 8, std::nullopt}, {"F8_E5M2", 8, std::nullopt}, {"C64", 64, std::nullopt}};

struct Span {
  std::uint64_t begin, end;
  std::string name;
};

// A non-negative JSON integer below 2^63.
std::uint64_t whole(const Json& j, const std::string& file, const std::string& what) {
  if (!j.is_number_integer() || (!j.is_number_unsigned() && j.get<std::int64_t>() < 0))
    throw Error("load", cat(file, ": ", what, " is not a whole number"));
  const auto v = j.get<std::uint64_t>();
  if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw Error("load", cat(file, ": ", what, " is too large"));
  return v;
}

// nlohmann::json keeps the last of two equal keys; the format forbids the second.
Json parse_header(const std::string& file, std::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > 16) throw Error("load", cat(file, ": the header is nested too deeply"));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  Json j;
  try {
    j = Json::parse(text, watch);
  } catch (const Json::exception& e) {
    throw Error("load", cat(file, ": the safetensors header is not JSON: ", e.what()));
  }
  if (!twice.empty()) throw Error("load", cat(file, ": the header names '", twice, "' twice"));
  if (!j.is_object()) throw Error("load", cat(file, ": the safetensors header is not an object"));
  return j;
}

}  // namespace

class SafetensorsReader {
 public:
  explicit SafetensorsReader(Weights& w) : w_(w) {}
  void add(const std::shared_ptr<const MappedFile>& file);

 private:
  Span tensor(const std::string& name, const Json& entry, const MappedFile& file, std::uint64_t data);
  Weights& w_;
};

Span SafetensorsReader::tensor(const std::string& name, const Json& entry, const MappedFile& file, std::uint64_t data) {
  const std::string where = cat(file.path(), ": tensor '", name, "'");
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets") ||
      entry.size() != 3 || !entry["dtype"].is_string() || !entry["shape"].is_array() ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2)
    throw Error("load", cat(where, " needs dtype, shape and two data_offsets"));
  StoredTensor t;
  t.type = entry["dtype"].get<std::string>();
  const auto row =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) { return r.name == t.type; });
  if (row == std::end(kTypes)) throw Error("load", cat(where, " has the unknown dtype ", t.type));
  t.dtype = row->dtype;
  std::uint64_t bits = row->bits;
  if (entry["shape"].size() > 64) throw Error("load", cat(where, " has ", entry["shape"].size(), " axes"));
  for (const Json& d : entry["shape"]) {
    const std::uint64_t extent = whole(d, where, "an extent");
    t.shape.push_back(static_cast<std::int64_t>(extent));
    if (__builtin_mul_overflow(bits, extent, &bits)) throw Error("load", cat(where, " is larger than any file"));
  }
  const std::uint64_t begin = whole(entry["data_offsets"][0], where, "an offset"),
                      end = whole(entry["data_offsets"][1], where, "an offset");
  const std::uint64_t room = file.bytes().size() - data;
  if (begin > end || end > room)
    throw Error("load", cat(where, " lies outside the file: bytes ", begin, " to ", end, " of ", room));
  if ((end - begin) * 8 != bits)
    throw Error("load", cat(where, " has ", end - begin, " bytes, its shape needs ", bits / 8));
  t.bytes = file.bytes().subspan(data + begin, end - begin);
  if (!w_.tensors_.emplace(name, std::move(t)).second) throw Error("load", cat(where, " is in two shards"));
  return {begin, end, name};
}

void SafetensorsReader::add(const std::shared_ptr<const MappedFile>& file) {
  const auto bytes = file->bytes();
  std::uint64_t length = 0;
  if (bytes.size() < 8) throw Error("load", cat(file->path(), ": too short for a safetensors file"));
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMaxHeader || length > bytes.size() - 8)
    throw Error("load", cat(file->path(), ": not a safetensors file, or a truncated one: a header of ", length,
                            " bytes in a file of ", bytes.size()));
  const Json header = parse_header(file->path(), {reinterpret_cast<const char*>(bytes.data()) + 8, length});
  const std::uint64_t data = 8 + length;
  std::vector<Span> spans;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) throw Error("load", cat(file->path(), ": __metadata__ is not an object"));
      for (const auto& [k, v] : entry.items()) {
        if (!v.is_string()) throw Error("load", cat(file->path(), ": the metadata '", k, "' is not a string"));
        w_.metadata_[k] = v.get<std::string>();
      }
      continue;
    }
    spans.push_back(tensor(name, entry, *file, data));
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t at = 0;
  for (const Span& s : spans) {
    if (s.begin != at)
      throw Error("load",
                  cat(file->path(), ": tensor '", s.name, s.begin < at ? "' overlaps another" : "' follows a hole"));
    at = s.end;
  }
  if (at != bytes.size() - data)
    throw Error("load", cat(file->path(), ": ", bytes.size() - data - at, " bytes belong to no tensor"));
}

namespace io {

bool looks_like_safetensors(std::span<const std::byte> b) { return b.size() > 8 && b[8] == std::byte{'{'}; }

Json parse_json(const std::string& path) {
  const std::string text = read_text_file(path);
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      if (depth > 64) throw Error("load", cat(path, ": nested too deeply"));
      return true;
    });
  } catch (const Json::exception& e) {
    throw Error("load", cat(path, " is not JSON: ", e.what()));
  }
}

std::vector<std::shared_ptr<const MappedFile>> add_safetensors(Weights& w, const std::string& path, bool map) {
  std::vector<std::shared_ptr<const MappedFile>> files;
  SafetensorsReader reader(w);
  const auto add = [&](const std::string& p) {
    files.push_back(map ? MappedFile::open(p) : MappedFile::read(p));
    reader.add(files.back());
  };
  if (!path.ends_with(".json")) {
    add(path);
    return files;
  }
  const Json index = parse_json(path);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw Error("load", cat(path, " has no weight_map"));
  std::set<std::string> shards;
  for (const auto& [name, shard] : index["weight_map"].items()) {
    if (!shard.is_string()) throw Error("load", cat(path, ": the shard of '", name, "' is not a file name"));
    const auto file = shard.get<std::string>();
    if (file.empty() || fs::path(file).filename() != file)  // never outside the directory
      throw Error("load", cat(path, ": the shard '", file, "' is not a plain file name"));
    shards.insert(file);
  }
  for (const std::string& s : shards) add((fs::path(path).parent_path() / s).string());
  for (const auto& [name, shard] : index["weight_map"].items())
    if (!w.find(name)) throw Error("load", cat(path, ": '", name, "' is in no shard"));
  return files;
}

}  // namespace io

namespace {

std::string_view type_name(DType d) {
  for (const TypeRow& r : kTypes)
    if (r.dtype == d) return r.name;
  throw Error("save_safetensors", cat("no such dtype in safetensors: ", name(d)));
}

void write_all(int fd, std::span<const std::byte> b, const std::string& path) {
  while (!b.empty()) {
    const ssize_t n = ::write(fd, b.data(), std::min<std::size_t>(b.size(), 1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Error("save_safetensors", cat("cannot write ", path, ": ", std::strerror(errno)));
    b = b.subspan(static_cast<std::size_t>(n));
  }
}

struct Temporary {  // removed unless it was renamed
  std::string path;
  int fd;
  ~Temporary() {
    if (fd >= 0) ::close(fd);
    if (!path.empty()) ::unlink(path.c_str());
  }
};

}  // namespace

void save_safetensors(const std::string& path, std::span<const TensorToSave> tensors,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorToSave& t : tensors) {
    std::int64_t n = static_cast<std::int64_t>(size_of(t.dtype));
    for (std::int64_t d : t.shape) n *= d;
    if (static_cast<std::uint64_t>(n) != t.bytes.size())
      throw Error("save_safetensors", cat("'", t.name, "' has ", t.bytes.size(), " bytes, its shape needs ", n));
    if (header.contains(t.name)) throw Error("save_safetensors", cat("two tensors are called '", t.name, "'"));
    header[t.name] = {{"dtype", type_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {at, at + t.bytes.size()}}};
    at += t.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::error_code ec;
  if (fs::exists(path, ec) && !fs::is_regular_file(path, ec))
    throw Error("save_safetensors", cat(path, " exists and is not a regular file"));
  std::string name = path + ".XXXXXX";
  Temporary tmp{{}, ::mkstemp(name.data())};
  if (tmp.fd < 0)
    throw Error("save_safetensors", cat("cannot create a file beside ", path, ": ", std::strerror(errno)));
  tmp.path = name;
  const std::uint64_t length = text.size();
  write_all(tmp.fd, std::as_bytes(std::span(&length, 1)), path);
  write_all(tmp.fd, std::as_bytes(std::span(text)), path);
  for (const TensorToSave& t : tensors) write_all(tmp.fd, t.bytes, path);
  if (::fchmod(tmp.fd, 0644) != 0 || ::fsync(tmp.fd) != 0 || ::rename(name.c_str(), path.c_str()) != 0)
    throw Error("save_safetensors", cat("cannot write ", path, ": ", std::strerror(errno)));
  tmp.path.clear();
}

}  // namespace lc
