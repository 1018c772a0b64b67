#include "lightcone/io/checkpoints/quants.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/composites/block_formats.h"
#include "lightcone/core/dtype.h"

// The layouts are those of ggml (ggml-common.h). Each function converts one block to floats. The formats that graphs
// read in place are described in composites/block_formats.h.
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
struct Row {
  GgmlType type;
  Block read = nullptr;  // null: known, but without a conversion
};
constexpr Row kOthers[] = {
    {{0, "F32", 1, 4, DType::F32}, plain<float>},
    {{1, "F16", 1, 2, DType::F16}, f16},
    {{9, "Q8_1", 32, 36}, q8_1},
    {{15, "Q8_K", 256, 292}, q8_k},
    {{16, "IQ2_XXS", 256, 66}},
    {{17, "IQ2_XS", 256, 74}},
    {{18, "IQ3_XXS", 256, 98}},
    {{19, "IQ1_S", 256, 50}},
    {{20, "IQ4_NL", 32, 18}, iq4_nl},
    {{21, "IQ3_S", 256, 110}},
    {{22, "IQ2_S", 256, 82}},
    {{23, "IQ4_XS", 256, 136}, iq4_xs},
    {{24, "I8", 1, 1, DType::I8}, plain<std::int8_t>},
    {{25, "I16", 1, 2, DType::I16}, plain<std::int16_t>},
    {{26, "I32", 1, 4, DType::I32}, plain<std::int32_t>},
    {{27, "I64", 1, 8, DType::I64}, plain<std::int64_t>},
    {{28, "F64", 1, 8, DType::F64}, plain<double>},
    {{29, "IQ1_M", 256, 56}},
    {{30, "BF16", 1, 2, DType::BF16}, bf16},
    {{34, "TQ1_0", 256, 54}},
    {{35, "TQ2_0", 256, 66}},
    {{39, "MXFP4", 32, 17}},
};
// Every type: these and the formats of composites/block_formats.h, sorted by ggml's number.
constexpr auto kTensorTypes = [] {
  constexpr std::size_t formats = std::size(kQuantFormats);
  std::array<Row, formats + std::size(kOthers)> all = {};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto row = [](const QuantInfo& q, Block read) -> Row {
      return {{q.ggml, q.ggml_name, q.elements, q.bytes, {}, q.format}, read};
    };
    ((all[I] = row(kQuantFormats[I], block<kQuantFormats[I].format>)), ...);
  }(std::make_index_sequence<formats>());
  std::copy(std::begin(kOthers), std::end(kOthers), all.begin() + formats);
  std::sort(all.begin(), all.end(), [](const Row& a, const Row& b) { return a.type.type < b.type.type; });
  return all;
}();
static_assert(std::adjacent_find(kTensorTypes.begin(), kTensorTypes.end(), [](const Row& a, const Row& b) {
                return a.type.type == b.type.type;
              }) == kTensorTypes.end());

const Row* find(std::uint32_t type) {
  const auto it =
      std::find_if(kTensorTypes.begin(), kTensorTypes.end(), [&](const Row& r) { return r.type.type == type; });
  return it == kTensorTypes.end() ? nullptr : &*it;
}

}  // namespace

const GgmlType* ggml_type(std::uint32_t type) {
  const Row* row = find(type);
  return row ? &row->type : nullptr;
}
std::string_view ggml_type_name(std::uint32_t type) {
  const Row* row = find(type);
  return row ? row->type.name : "?";
}

bool can_dequantize(std::uint32_t type) {
  const Row* row = find(type);
  return row && row->read;
}

void dequantize_gguf(std::uint32_t type, const std::byte* data, std::int64_t elements, float* out) {
  const Row* row = find(type);
  if (!row || !row->read) throw Error("load", str_cat("values of type ", ggml_type_name(type), " cannot be read yet"));
  const auto* b = reinterpret_cast<const u8*>(data);
  for (std::int64_t i = 0; i < elements; i += row->type.elements, b += row->type.bytes) row->read(b, out + i);
}

}  // namespace lc
