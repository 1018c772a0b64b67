// The element types of ggml, and their conversion to f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lightcone/composites/block_formats.h"

namespace lc {

struct GgmlType {  // a type stored in blocks of `elements` values in `bytes` bytes
  std::uint32_t type;
  std::string_view name;
  int elements, bytes;
  std::optional<DType> dtype = {};        // set if the values are stored plainly
  std::optional<QuantFormat> quant = {};  // set if graphs read the blocks in place
};
const GgmlType* ggml_type(std::uint32_t type);  // null if the number is unknown
// Returns the name of a type, "?" if the number is unknown.
std::string_view ggml_type_name(std::uint32_t type);

// Converts `elements` values of ggml type `type` to f32. Throws Error for an unknown type.
void dequantize_gguf(std::uint32_t type, const std::byte* data, std::int64_t elements, float* out);
// True if the type is known, so that dequantize_gguf() can convert it.
bool can_dequantize(std::uint32_t type);

}  // namespace lc
