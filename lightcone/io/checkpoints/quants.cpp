#include "lightcone/io/checkpoints/quants.h"

#include <cstring>

#include "lightcone/core/dtype.h"
#include "lightcone/core/error.h"
#include "lightcone/core/quant.h"
#include "lightcone/io/checkpoints/gguf.h"

// The layouts are ggml's (ggml-common.h); each function turns one block into floats. Those that graphs
// read in place are described in core/quant.h.
namespace lc {
namespace {

using u8 = std::uint8_t;

float half(const u8* p) {
  std::uint16_t h;
  std::memcpy(&h, p, 2);
  return f16_to_f32(h);
}
int low(u8 x) { return x & 15; }
int high(u8 x) { return x >> 4; }
int i8(u8 x) { return static_cast<std::int8_t>(x); }

template <QuantFormat F>
void block(const u8* b, float* y) {
  for (int k = 0; k < info(F).elements; ++k) y[k] = quant_value(F, k, [b](std::int64_t at) { return b[at]; });
}
void q8_1(const u8* b, float* y) {
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(i8(b[4 + j])) * half(b);
}
void q8_k(const u8* b, float* y) {
  float d;
  std::memcpy(&d, b, 4);
  for (int j = 0; j < 256; ++j) y[j] = static_cast<float>(i8(b[4 + j])) * d;
}

constexpr float kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
void iq4(const u8* q, float d, float* y) {
  for (int j = 0; j < 16; ++j) y[j] = d * kIq4[low(q[j])], y[j + 16] = d * kIq4[high(q[j])];
}
void iq4_nl(const u8* b, float* y) { iq4(b + 2, half(b), y); }
void iq4_xs(const u8* b, float* y) {
  const int upper = b[2] | b[3] << 8;
  for (int i = 0; i < 8; ++i) {
    const int scale = ((b[4 + i / 2] >> (4 * (i % 2))) & 15) | (upper >> (2 * i) & 3) << 4;
    iq4(b + 8 + 16 * i, half(b) * static_cast<float>(scale - 32), y + 32 * i);
  }
}

template <class T>
void plain(const u8* b, float* y) {
  T v;
  std::memcpy(&v, b, sizeof v);
  *y = static_cast<float>(v);
}
void f16(const u8* b, float* y) { *y = half(b); }
void bf16(const u8* b, float* y) {
  const std::uint32_t bits = static_cast<std::uint32_t>(b[0]) << 16 | static_cast<std::uint32_t>(b[1]) << 24;
  std::memcpy(y, &bits, 4);
}

using Block = void (*)(const u8*, float*);
Block reader(std::uint32_t type) {
  switch (type) {
    case 0: return plain<float>;
    case 1: return f16;
    case 2: return block<QuantFormat::Q4_0>;
    case 3: return block<QuantFormat::Q4_1>;
    case 6: return block<QuantFormat::Q5_0>;
    case 7: return block<QuantFormat::Q5_1>;
    case 8: return block<QuantFormat::Q8_0>;
    case 9: return q8_1;
    case 10: return block<QuantFormat::Q2_K>;
    case 11: return block<QuantFormat::Q3_K>;
    case 12: return block<QuantFormat::Q4_K>;
    case 13: return block<QuantFormat::Q5_K>;
    case 14: return block<QuantFormat::Q6_K>;
    case 15: return q8_k;
    case 20: return iq4_nl;
    case 23: return iq4_xs;
    case 24: return plain<std::int8_t>;
    case 25: return plain<std::int16_t>;
    case 26: return plain<std::int32_t>;
    case 27: return plain<std::int64_t>;
    case 28: return plain<double>;
    case 30: return bf16;
    default: return nullptr;
  }
}

}  // namespace

bool can_dequantize(std::uint32_t type) { return reader(type) != nullptr; }

void dequantize_gguf(std::uint32_t type, const std::byte* data, std::int64_t elements, float* out) {
  const GgmlType* t = ggml_type(type);
  const Block read = reader(type);
  if (!t || !read) throw Error("load", cat("values of type ", ggml_type_name(type), " cannot be read yet"));
  const auto* b = reinterpret_cast<const u8*>(data);
  for (std::int64_t i = 0; i < elements; i += t->elements, b += t->bytes) read(b, out + i);
}

}  // namespace lc
