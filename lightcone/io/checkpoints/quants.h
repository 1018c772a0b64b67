// The element types of ggml, and their conversion to f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lightcone/formats/block_formats.h"

namespace lc {

struct GgmlType {  // a type stored in blocks of `elements` values in `bytes` bytes
  std::uint32_t type;
  std::string_view name;
  int elements, bytes;
  std::optional<DType> dtype = {};        // set if the values are stored plainly
  std::optional<QuantFormat> quant = {};  // set if graphs read the blocks in place
};
const GgmlType* ggml_type(std::uint32_t type);  // null if the number is unknown
// True for numbers whose types ggml has removed: Q4_2 and Q4_3, and Q4_0 and IQ4_NL reordered for one processor.
constexpr bool was_ggml_type(std::uint32_t type) {
  return type == 4 || type == 5 || (type >= 31 && type <= 33) || (type >= 36 && type <= 38);
}
// Returns the name of a type, "?" if the number is unknown.
std::string_view ggml_type_name(std::uint32_t type);

// Converts `elements` values of ggml type `type` to f32. Throws Error for an unknown type.
void dequantize_gguf(std::uint32_t type, const std::byte* data, std::int64_t elements, float* out);
// True if the type is known, so that dequantize_gguf() can convert it.
bool can_dequantize(std::uint32_t type);

}  // namespace lc
