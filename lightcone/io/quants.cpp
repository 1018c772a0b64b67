#include "lightcone/io/quants.h"

#include <cstring>

#include "lightcone/core/dtype.h"
#include "lightcone/core/error.h"
#include "lightcone/io/gguf.h"

// The layouts are ggml's (ggml-common.h); each function turns one block into floats.
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

void q4_0(const u8* b, float* y) {
  const float d = half(b);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(low(b[2 + j]) - 8) * d;
    y[j + 16] = static_cast<float>(high(b[2 + j]) - 8) * d;
  }
}
void q4_1(const u8* b, float* y) {
  const float d = half(b), m = half(b + 2);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(low(b[4 + j])) * d + m;
    y[j + 16] = static_cast<float>(high(b[4 + j])) * d + m;
  }
}
// The fifth bits of a block's 32 values lie in one word.
void q5(const u8* b, const u8* nibbles, float d, float m, int bias, float* y) {
  std::uint32_t bits;
  std::memcpy(&bits, b, 4);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>((low(nibbles[j]) | static_cast<int>((bits >> j & 1) << 4)) - bias) * d + m;
    y[j + 16] = static_cast<float>((high(nibbles[j]) | static_cast<int>((bits >> (j + 16) & 1) << 4)) - bias) * d + m;
  }
}
void q5_0(const u8* b, float* y) { q5(b + 2, b + 6, half(b), 0, 16, y); }
void q5_1(const u8* b, float* y) { q5(b + 4, b + 8, half(b), half(b + 2), 0, y); }
void q8_0(const u8* b, float* y) {
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(i8(b[2 + j])) * half(b);
}
void q8_1(const u8* b, float* y) {
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(i8(b[4 + j])) * half(b);
}
void q8_k(const u8* b, float* y) {
  float d;
  std::memcpy(&d, b, 4);
  for (int j = 0; j < 256; ++j) y[j] = static_cast<float>(i8(b[4 + j])) * d;
}

void q2_k(const u8* b, float* y) {
  const u8 *scales = b, *q = b + 16;
  const float d = half(b + 80), min = half(b + 82);
  for (int n = 0; n < 2; ++n, q += 32)
    for (int shift = 0; shift < 8; shift += 2)
      for (int part = 0; part < 2; ++part, ++scales)
        for (int l = 0; l < 16; ++l)
          *y++ = d * static_cast<float>(low(*scales)) * static_cast<float>(q[l + 16 * part] >> shift & 3) -
                 min * static_cast<float>(high(*scales));
}

void q3_k(const u8* b, float* y) {
  const u8 *mask = b, *q = b + 32, *packed = b + 96;
  const float d = half(b + 108);
  int scale[16];  // six bits each: four in the first eight bytes, two in the last four
  for (int i = 0; i < 16; ++i) {
    const int four = i < 8 ? low(packed[i]) : high(packed[i - 8]);
    scale[i] = (four | (packed[8 + i % 4] >> (2 * (i / 4)) & 3) << 4) - 32;
  }
  int is = 0, bit = 0;
  for (int n = 0; n < 2; ++n, q += 32)
    for (int shift = 0; shift < 8; shift += 2, ++bit)
      for (int part = 0; part < 2; ++part, ++is)
        for (int l = 16 * part; l < 16 * part + 16; ++l)
          *y++ = d * static_cast<float>(scale[is]) *
                 static_cast<float>((q[l] >> shift & 3) - (mask[l] >> bit & 1 ? 0 : 4));
}

// The eight six-bit scales and minima of a Q4_K or Q5_K block.
void scale_and_min(const u8* q, int j, int* scale, int* min) {
  if (j < 4) {
    *scale = q[j] & 63, *min = q[j + 4] & 63;
  } else {
    *scale = low(q[j + 4]) | q[j - 4] >> 6 << 4;
    *min = high(q[j + 4]) | q[j] >> 6 << 4;
  }
}
void q45_k(const u8* b, const u8* fifth, const u8* q, float* y) {
  const float d = half(b), m = half(b + 2);
  for (int j = 0; j < 8; ++j) {
    int scale, min;
    scale_and_min(b + 4, j, &scale, &min);
    const float ds = d * static_cast<float>(scale), ms = m * static_cast<float>(min);
    const u8* nibbles = q + j / 2 * 32;
    for (int l = 0; l < 32; ++l) {
      const int v = (j % 2 ? high(nibbles[l]) : low(nibbles[l])) + (fifth ? (fifth[l] >> j & 1) * 16 : 0);
      *y++ = ds * static_cast<float>(v) - ms;
    }
  }
}
void q4_k(const u8* b, float* y) { q45_k(b, nullptr, b + 16, y); }
void q5_k(const u8* b, float* y) { q45_k(b, b + 16, b + 48, y); }

void q6_k(const u8* b, float* y) {
  const u8 *ql = b, *qh = b + 128, *scale = b + 192;
  const float d = half(b + 208);
  for (int n = 0; n < 2; ++n, ql += 64, qh += 32, scale += 8)
    for (int quarter = 0; quarter < 4; ++quarter)
      for (int l = 0; l < 32; ++l) {
        const u8 byte = ql[l + (quarter % 2) * 32];
        const int v = ((quarter < 2 ? low(byte) : high(byte)) | (qh[l] >> (2 * quarter) & 3) << 4) - 32;
        *y++ = d * static_cast<float>(i8(scale[l / 16 + 2 * quarter])) * static_cast<float>(v);
      }
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
    case 2: return q4_0;
    case 3: return q4_1;
    case 6: return q5_0;
    case 7: return q5_1;
    case 8: return q8_0;
    case 9: return q8_1;
    case 10: return q2_k;
    case 11: return q3_k;
    case 12: return q4_k;
    case 13: return q5_k;
    case 14: return q6_k;
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
  const Block block = reader(type);
  if (!t || !block) throw Error("load", cat("values of type ", ggml_type_name(type), " cannot be read yet"));
  const auto* b = reinterpret_cast<const u8*>(data);
  for (std::int64_t i = 0; i < elements; i += t->elements, b += t->bytes) block(b, out + i);
}

}  // namespace lc
