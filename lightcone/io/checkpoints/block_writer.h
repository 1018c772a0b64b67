// Puts codes into a block, where the table of formats says that they lie.
#pragma once

#include <cstring>

#include "lightcone/formats/block_formats.h"

namespace lc::io {

class BlockWriter {
 public:
  // Clears the block.
  BlockWriter(const QuantInfo& f, std::byte* block) : f_(f), block_(block) {
    std::memset(block, 0, static_cast<std::size_t>(f.bytes));
  }
  // The code of value k, before its bias: what q, scale or min is in the block.
  void number(int k, int code) { put(f_.q, k, code); }
  void scale(int k, int code) { put(f_.scale, k, code); }
  void minimum(int k, int code) { put(f_.min, k, code); }
  // Writes d, or the factor of the minima, as f16, and returns what was written.
  float d(float v) { return half(f_.d, v); }
  float d_min(float v) { return half(f_.d_min, v); }
  std::byte& byte(int at) { return block_[at]; }

 private:
  float half(int at, float v) {
    const std::uint16_t h = f64_to_f16(v);
    std::memcpy(block_ + at, &h, 2);
    return f16_to_f32(h);
  }
  void put(const QuantSum<QuantField>& code, int k, int value) {
    const int v = value & 255;
    for (const QuantField* field : {&code.low, &code.high}) {
      const QuantBits<int> b = quant_bits(*field, k);
      if (b.width == 0) continue;
      const int bits = (v >> b.place & ((1 << b.width) - 1)) << b.shift % 8;
      for (int n = 0; n < (b.one_byte ? 1 : 2); ++n)
        block_[b.byte + b.shift / 8 + n] |= std::byte(static_cast<unsigned>(bits >> 8 * n) & 255);
    }
  }
  const QuantInfo& f_;
  std::byte* block_;
};

// Each writes one block. Defined in quantize_plain.cpp and quantize_scaled.cpp.
void quantize_plain(const QuantInfo& f, const float* x, std::byte* block);
void quantize_scaled(const QuantInfo& f, const float* x, std::byte* block);

}  // namespace lc::io
