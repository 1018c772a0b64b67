// Reads GGUF files, versions 2 and 3: the header with its metadata, and the positions of the tensors.
//
// Every length in a file is checked against the remaining bytes before anything is allocated. Texts and arrays are not
// copied: they are views of the mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lightcone/io/checkpoints/quants.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc {

// An array of numbers or booleans in the type of the file, read in place.
class GgufNumbers {
 public:
  GgufNumbers() = default;
  GgufNumbers(std::uint32_t type, std::span<const std::byte> bytes, std::size_t each)
      : type_(type), each_(each), bytes_(bytes) {}
  std::size_t size() const { return bytes_.size() / each_; }  // number of elements
  double operator[](std::size_t i) const;                     // element i, converted to f64
  bool is_float() const;                                      // true if the type is f32 or f64

 private:
  std::uint32_t type_ = 0;
  std::size_t each_ = 1;
  std::span<const std::byte> bytes_;
};

// A value of the metadata. Single numbers of all widths become i64, u64 or f64.
using GgufValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view, GgufNumbers,
                               std::vector<std::string_view>>;

// An entry of the table of tensors.
struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // row-major: GGUF's dimensions in reverse order
  std::uint32_t type = 0;
  std::uint64_t offset = 0;  // from the beginning of the file
  std::uint64_t bytes = 0;
};

// The header of a GGUF file. Views into the metadata are valid as long as `file` exists.
struct GgufFile {
  std::uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  // The same in the order of the file: each key, and its type and value as the file has them.
  std::vector<std::pair<std::string_view, std::span<const std::byte>>> stored;
  std::vector<GgufTensor> tensors;
  std::size_t header_bytes = 0;  // size of metadata and table of tensors
  std::shared_ptr<const MappedFile> file;

  // Accessors of the metadata. Each returns the value of a key, or nullopt (a null pointer) if there is none, and
  // throws Error if the value has another kind.
  std::optional<double> number(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;  // an integer; Error above 2^63 - 1
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  const std::vector<std::string_view>* strings(std::string_view key) const;
  const GgufNumbers* numbers(std::string_view key) const;
};

// Reads the header of a GGUF file. Throws Error if the file is damaged, not GGUF, or of another version.
GgufFile read_gguf(std::shared_ptr<const MappedFile> file, const ReadOptions& o = {});
GgufFile read_gguf(const std::string& path, const ReadOptions& o = {});

std::string str(const GgufValue& v, std::size_t limit = 60);  // for messages: printable and shortened to `limit` bytes

}  // namespace lc
