#include "lightcone/llm/stored.h"

#include <cstring>

#include "lightcone/base/error.h"

namespace lc::llm {
namespace {

// Moves row (head, part, i) to row (head, i, part), or back.
std::vector<float> with_rows_moved(std::span<const float> w, std::int64_t heads, std::int64_t head_dim, bool back) {
  const std::size_t half = static_cast<std::size_t>(head_dim) / 2,
                    columns = w.size() / (static_cast<std::size_t>(heads) * 2 * half);
  std::vector<float> out(w.size());
  for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h)
    for (std::size_t i = 0; i < half; ++i)
      for (std::size_t part = 0; part < 2; ++part) {
        const std::size_t neighbours = ((h * half + i) * 2 + part) * columns,
                          halves = ((h * 2 + part) * half + i) * columns;
        std::memcpy(&out[back ? halves : neighbours], &w[back ? neighbours : halves], columns * sizeof(float));
      }
  return out;
}

}  // namespace

std::vector<float> neighbours_of_halves(std::span<const float> w, std::int64_t heads, std::int64_t head_dim) {
  return with_rows_moved(w, heads, head_dim, false);
}
std::vector<float> halves_of_neighbours(std::span<const float> w, std::int64_t heads, std::int64_t head_dim) {
  return with_rows_moved(w, heads, head_dim, true);
}

void require_stored_type(std::string_view op, DType type) {
  if (type != DType::F32 && type != DType::F16 && type != DType::BF16)
    throw Error(op, str_cat("weights of type ", name(type), ": they can be f32, f16 or bf16"));
}

std::vector<std::byte> stored_as(std::span<const float> w, DType type) {
  std::vector<std::byte> bytes(w.size() * size_of(type));
  for (std::size_t k = 0; k < w.size(); ++k) {
    if (type == DType::F32) {
      std::memcpy(bytes.data() + 4 * k, &w[k], 4);
      continue;
    }
    const std::uint16_t bits = type == DType::BF16 ? f32_to_bf16(w[k]) : f32_to_f16(w[k]);
    std::memcpy(bytes.data() + 2 * k, &bits, 2);
  }
  return bytes;
}

}  // namespace lc::llm
