// GGUF files, versions 2 and 3: the header with its metadata, and where the tensors lie.
//
// Every length in a file is checked against the bytes that are left before anything is allocated. Texts and arrays are
// not copied: they are read where they lie in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lightcone/io/checkpoints/quants.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc {

// An array of numbers or booleans, in the file's own type.
class GgufNumbers {
 public:
  GgufNumbers() = default;
  GgufNumbers(std::uint32_t type, std::span<const std::byte> bytes, std::size_t each)
      : type_(type), each_(each), bytes_(bytes) {}
  std::size_t size() const { return bytes_.size() / each_; }
  double operator[](std::size_t i) const;
  bool is_float() const;

 private:
  std::uint32_t type_ = 0;
  std::size_t each_ = 1;
  std::span<const std::byte> bytes_;
};

// Single numbers of all widths arrive as i64, u64 or f64.
using GgufValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view, GgufNumbers,
                               std::vector<std::string_view>>;

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // row-major: GGUF's dimensions reversed
  std::uint32_t type = 0;
  std::uint64_t offset = 0;  // from the start of the file
  std::uint64_t bytes = 0;
};

struct GgufFile {
  std::uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;
  std::size_t header_bytes = 0;  // metadata and tensor table
  std::shared_ptr<const MappedFile> file;

  // A value, when it is there; Error when it is of another kind.
  std::optional<double> number(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;  // of a whole type, at most 2^63 - 1
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  const std::vector<std::string_view>* strings(std::string_view key) const;
  const GgufNumbers* numbers(std::string_view key) const;
};

GgufFile read_gguf(std::shared_ptr<const MappedFile> file, const ReadOptions& o = {});
GgufFile read_gguf(const std::string& path, const ReadOptions& o = {});

std::string str(const GgufValue& v, std::size_t limit = 60);  // shortened and printable, for people

}  // namespace lc
