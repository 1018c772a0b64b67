// How the values of a trained Llama are written, whatever the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/core/dtype.h"

namespace lc {

// Error for another type than f32, f16 and bf16.
void require_stored_type(std::string_view op, DType type);
// Rounded to nearest, ties to even.
std::vector<std::byte> stored_as(std::span<const float> values, DType type);

// llama.cpp's number of the type that most of a file's matrices have.
inline std::uint32_t gguf_file_type(DType t) { return t == DType::F32 ? 0 : t == DType::F16 ? 1 : 32; }

// Rows of queries and keys within each head: rotated in neighbours (2i, 2i + 1), as GGUF's "llama" has them, or in
// halves (i, i + head_dim / 2), as Hugging Face has them. Matrices of heads * head_dim rows.
std::vector<float> neighbours_of_halves(std::span<const float> w, std::int64_t heads, std::int64_t head_dim);
std::vector<float> halves_of_neighbours(std::span<const float> w, std::int64_t heads, std::int64_t head_dim);

}  // namespace lc
