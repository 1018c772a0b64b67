// Conversions of trained values for storage, shared by all formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/core/dtype.h"

namespace lc::llm {

// Throws Error for a type other than f32, f16 and bf16.
void require_stored_type(std::string_view op, DType type);
// Rounds to nearest, ties to even.
std::vector<std::byte> stored_as(std::span<const float> values, DType type);

// Reorders the rows of a query or key matrix [heads * head_dim, columns] from halves (i, i + head_dim / 2) of each
// head, the order of Hugging Face, to neighbours (2i, 2i + 1), the order of GGUF's "llama".
std::vector<float> neighbours_of_halves(std::span<const float> w, std::int64_t heads, std::int64_t head_dim);
// The inverse of neighbours_of_halves().
std::vector<float> halves_of_neighbours(std::span<const float> w, std::int64_t heads, std::int64_t head_dim);

}  // namespace lc::llm
