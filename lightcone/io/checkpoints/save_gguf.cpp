// The writer of GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): counts, metadata, table of tensors,
// data. All numbers are little-endian.
#include <bit>
#include <optional>
#include <set>
#include <type_traits>

#include "lightcone/base/error.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/checkpoints/save_internal.h"
#include "lightcone/io/printable.h"

static_assert(std::endian::native == std::endian::little);

namespace lc {
namespace {

constexpr std::size_t kAlignment = 32, kLongestName = 63, kMostAxes = 4;
constexpr std::uint32_t kString = 8, kArray = 9;

template <class T>
constexpr std::uint32_t kind() {  // GGUF's number of a value type
  if constexpr (std::is_same_v<T, std::uint32_t>) return 4;
  else if constexpr (std::is_same_v<T, std::int32_t>) return 5;
  else if constexpr (std::is_same_v<T, float>) return 6;
  else if constexpr (std::is_same_v<T, bool>) return 7;
  else return kString;
}

std::optional<std::uint32_t> ggml_number(const TensorToSave& t) {
  if (t.quant) return info(*t.quant).ggml;
  switch (t.dtype) {
    case DType::F32: return 0;
    case DType::F16: return 1;
    case DType::I8: return 24;
    case DType::I16: return 25;
    case DType::I32: return 26;
    case DType::I64: return 27;
    case DType::F64: return 28;
    case DType::BF16: return 30;
    default: return std::nullopt;
  }
}

std::size_t aligned(std::size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

class Header {
 public:
  template <class T>
  void put(const T& v) {
    if constexpr (std::is_same_v<T, std::string>) {
      put(static_cast<std::uint64_t>(v.size()));
      bytes_ += v;
    } else {
      bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
    }
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(kind<T>()), put(static_cast<std::uint64_t>(values.size()));
    for (const T& v : values) put(v);
  }
  void field(const std::string& key, const GgufField& value) {
    put(key);
    std::visit(
        [this]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, GgufStored>) {
            bytes_.append(reinterpret_cast<const char*>(v.bytes.data()), v.bytes.size());
            return;
          } else {
            constexpr bool single = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;
            put(single ? kind<T>() : kArray), put(v);
          }
        },
        value);
  }
  void tensor(const TensorToSave& t, std::uint64_t offset) {
    put(t.name), put(static_cast<std::uint32_t>(t.shape.size()));
    for (auto axis = t.shape.rbegin(); axis != t.shape.rend(); ++axis) put(static_cast<std::uint64_t>(*axis));
    put(*ggml_number(t)), put(offset);
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_ = "GGUF";
};

void check_all(std::span<const TensorToSave> tensors, const GgufFields& metadata) {
  io::check_tensors("save_gguf", tensors, {}, true);
  for (const TensorToSave& t : tensors) {
    if (!ggml_number(t)) throw Error("save_gguf", str_cat(in_quotes(t.name), ": GGUF has no type ", name(t.dtype)));
    if (t.name.size() > kLongestName || t.shape.size() > kMostAxes)
      throw Error("save_gguf", str_cat(in_quotes(t.name), ": names have at most ", kLongestName,
                                       " bytes, tensors at most ", kMostAxes, " axes"));
  }
  std::set<std::string_view> keys;
  for (const auto& [key, value] : metadata)
    if (!keys.insert(key).second) throw Error("save_gguf", str_cat("the key ", in_quotes(key), " is there twice"));
}

}  // namespace

void save_gguf(const std::string& path, std::span<const TensorToSave> tensors, const GgufFields& metadata) {
  check_all(tensors, metadata);
  Header h;
  h.put(std::uint32_t{3});
  h.put(static_cast<std::uint64_t>(tensors.size())), h.put(static_cast<std::uint64_t>(metadata.size()));
  for (const auto& [key, value] : metadata) h.field(key, value);
  std::uint64_t offset = 0;
  for (const TensorToSave& t : tensors) {
    h.tensor(t, offset);
    offset += aligned(t.bytes.size());
  }
  h.bytes().resize(aligned(h.bytes().size()));
  io::AtomicFile file("save_gguf", path);
  file.write(h.bytes());
  for (const TensorToSave& t : tensors) {
    file.write(t.bytes);
    file.write(std::string(aligned(t.bytes.size()) - t.bytes.size(), '\0'));
  }
  file.commit();
}

}  // namespace lc
