// ggml's element types, and reading them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lightcone/composites/block_formats.h"

namespace lc {

struct GgmlType {  // blocks of `elements` values in `bytes` bytes
  std::uint32_t type;
  std::string_view name;
  int elements, bytes;
  std::optional<DType> dtype = {};        // stored plainly,
  std::optional<QuantFormat> quant = {};  // or in blocks that graphs read in place
};
const GgmlType* ggml_type(std::uint32_t type);  // null when unknown
std::string_view ggml_type_name(std::uint32_t type);

// `elements` values stored as ggml type `type`, as f32. Error for a type that has no
// reader here (the IQ1, IQ2, IQ3 and ternary families).
void dequantize_gguf(std::uint32_t type, const std::byte* data, std::int64_t elements, float* out);
bool can_dequantize(std::uint32_t type);

}  // namespace lc
