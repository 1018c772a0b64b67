// Whole blocks at once, for kernels and readers that have no code of their own for a format.
#pragma once

#include <cstdint>

#include "lightcone/formats/block_formats.h"

namespace lc {

// value(k) = numbers[k] * scales[k / 16]. The product is the value that quant_value() rounds, which is exact in f32
// except for Q8_K.
struct DecodedBlock {
  alignas(64) std::int8_t numbers[256];
  float scales[16];
};

// True if the numbers of a format fit: it has no minima, and a scale holds for 16 values or more.
constexpr bool can_decode(const QuantInfo& f) { return f.d_min < 0 && f.scaled() % 16 == 0 && f.elements % 32 == 0; }
// Decodes the block of `info(format).bytes` bytes, for which can_decode() holds.
void decode_block(QuantFormat format, const std::uint8_t* block, DecodedBlock& to);

}  // namespace lc
