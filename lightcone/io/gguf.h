// GGUF files, versions 2 and 3: the header with its metadata, and where the tensors lie.
//
// Every length in a file is checked against the bytes that are left before anything is allocated.
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

#include "lightcone/io/mapped_file.h"

namespace lc {

// Numbers of all widths arrive as i64, u64 or f64; arrays have one kind of element.
using GgufValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>>;

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
  std::shared_ptr<const MappedFile> file;

  // A value, when it is there and of the kind asked for.
  std::optional<double> number(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  const std::vector<std::string>* strings(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
};

GgufFile read_gguf(std::shared_ptr<const MappedFile> file);
GgufFile read_gguf(const std::string& path);

// ggml's element types: blocks of `elements` values in `bytes` bytes.
struct GgmlType {
  std::uint32_t type;
  std::string_view name;
  int elements, bytes;
};
const GgmlType* ggml_type(std::uint32_t type);  // null when unknown
std::string_view ggml_type_name(std::uint32_t type);
std::string str(const GgufValue& v, std::size_t limit = 60);  // shortened, for people

}  // namespace lc
