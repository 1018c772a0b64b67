// Reading ggml's block formats.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lc {

// `elements` values stored as ggml type `type` (gguf.h), as f32. Error for a type that has no
// reader here (the IQ1, IQ2, IQ3 and ternary families).
void dequantize_gguf(std::uint32_t type, const std::byte* data, std::int64_t elements, float* out);
bool can_dequantize(std::uint32_t type);

}  // namespace lc
