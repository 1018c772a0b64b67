#include "lightcone/io/checkpoints/quants.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/core/dtype.h"
#include "lightcone/formats/block_decode.h"

// Each function converts one block to floats. formats/block_formats.h describes the blocks.
namespace lc {
namespace {

using u8 = std::uint8_t;

float half(const u8* p) {
  std::uint16_t h;
  std::memcpy(&h, p, 2);
  return f16_to_f32(h);
}
template <QuantFormat F>
void block(const u8* b, float* y) {
  if constexpr (can_decode(info(F))) {
    DecodedBlock d;
    decode_block(F, b, d);
    for (int k = 0; k < info(F).elements; ++k) y[k] = static_cast<float>(d.numbers[k]) * d.scales[k / 16];
  } else {
    for (int k = 0; k < info(F).elements; ++k) y[k] = quant_value(F, k, [b](std::int64_t at) { return int{b[at]}; });
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
  Block read = nullptr;
};
constexpr Row kOthers[] = {
    {{0, "F32", 1, 4, DType::F32}, plain<float>},         {{1, "F16", 1, 2, DType::F16}, f16},
    {{24, "I8", 1, 1, DType::I8}, plain<std::int8_t>},    {{25, "I16", 1, 2, DType::I16}, plain<std::int16_t>},
    {{26, "I32", 1, 4, DType::I32}, plain<std::int32_t>}, {{27, "I64", 1, 8, DType::I64}, plain<std::int64_t>},
    {{28, "F64", 1, 8, DType::F64}, plain<double>},       {{30, "BF16", 1, 2, DType::BF16}, bf16},
};
// Every type: these and the formats of formats/block_formats.h, sorted by ggml's number.
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

bool can_dequantize(std::uint32_t type) { return find(type) != nullptr; }

void dequantize_gguf(std::uint32_t type, const std::byte* data, std::int64_t elements, float* out) {
  const Row* row = find(type);
  if (!row) throw Error("load", str_cat("values of the unknown type ", type, " cannot be read"));
  const auto* b = reinterpret_cast<const u8*>(data);
  for (std::int64_t i = 0; i < elements; i += row->type.elements, b += row->type.bytes) row->read(b, out + i);
}

}  // namespace lc
