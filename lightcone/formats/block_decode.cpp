#include "lightcone/formats/block_decode.h"

#include <array>
#include <cstring>
#include <utility>

namespace lc {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
constexpr u64 kOnes = 0x0101010101010101, kLow = 0x7f7f7f7f7f7f7f7f;

// For each byte of signs, 0xff in the bytes that are negative.
constexpr auto kNegative = [] {
  std::array<u64, 256> all = {};
  for (u64 s = 0; s < 256; ++s)
    for (int j = 0; j < 8; ++j)
      if (s >> j & 1) all[s] |= u64{0xff} << (8 * j);
  return all;
}();
// Seven signs, and an eighth that makes their number even.
constexpr auto kEven = [] {
  std::array<u8, 128> all = {};
  for (unsigned s = 0; s < 128; ++s) all[s] = static_cast<u8>(s | (std::popcount(s) & 1u) << 7);
  return all;
}();

// Reads the fields of one format. They are template arguments, so that the compiler knows every shift and mask.
template <QuantFormat F>
struct Block {
  static constexpr QuantInfo f = info(F);
  static constexpr bool has_grid = f.more.book.entries > 0;
  const u8* p;

  template <QuantField Q>
  int field(u32 k) const {
    if constexpr (Q.packing.bits == 0) return 0;
    else return quant_read(quant_bits(Q, k), [this](u32 i) { return int{p[i]}; });
  }
  template <QuantSum<QuantField> C>
  int code(u32 k) const {
    const int v = field<C.low>(k) + field<C.high>(k);
    return (C.is_signed && v > 127 ? v - 256 : v) + C.bias;
  }

  // Eight numbers of a grid, in the bytes of a word.
  u64 eight(u32 k) const {
    const u64* entries = f.more.book.numbers;
    u64 v = entries[code<f.q>(k)];
    if constexpr (f.more.book.width == 4) v |= entries[code<f.q>(k + 4)] << 32;
    const auto signs = static_cast<u32>(field<f.more.signs>(k));
    if constexpr (f.more.signs.packing.bits == 1) {  // adds 1 or -1 to each byte
      const u64 by = signs ? ~u64{0} : kOnes;
      return ((v & kLow) + (by & kLow)) ^ ((v ^ by) & ~kLow);
    } else {
      // No number is 0, so that the negative bytes ~v + 1 carry nothing over.
      const u64 mask = kNegative[f.more.signs.packing.bits == 7 ? kEven[signs] : signs];
      return (v ^ mask) + (mask & kOnes);
    }
  }
  static std::int8_t level(int c) { return static_cast<std::int8_t>(f.more.book.width ? f.more.book.levels[c] : c); }
  // True if eight values have adjacent bytes and one shift, so that the compiler can read them together.
  static constexpr bool in_runs() {
    constexpr BitPacking w = f.q.low.packing;
    return f.q.high.packing.bits == 0 && w.one_byte() && w.values_per_step == 1 && w.byte_period % 8 == 0 &&
           (w.shift_step == 0 || w.values_per_shift % 8 == 0);
  }
  void run(u32 k, std::int8_t* to) const {
    const QuantBits<u32> first = quant_bits(f.q.low, k);
    for (u32 i = 0; i < 8; ++i) {
      const int v = (p[first.byte + i] >> first.shift & ((1 << first.width) - 1)) << first.place;
      to[i] = level((f.q.is_signed && v > 127 ? v - 256 : v) + f.q.bias);
    }
  }
  // Ternary digits, in runs of the same digit of many bytes.
  void digits(DecodedBlock& to) const {
    const u8* from = p + f.q.low.at;
    std::int8_t* out = to.numbers;
    for (const auto& [bytes, count] : {std::pair{32, 5}, std::pair{16, 5}, std::pair{4, 4}}) {
      for (int n = 0, power = 1; n < count; ++n, power *= 3)
        for (int i = 0; i < bytes; ++i)
          *out++ = static_cast<std::int8_t>(((from[i] * power & 255) * 3 >> 8) + f.q.bias);
      from += bytes;
    }
  }
  // Flattened, because shifts and masks are constants only where the functions above are inlined.
  [[gnu::flatten]] void decode(DecodedBlock& to) const {
    const double d = quant_d(f, f.d, [this](int i) { return int{p[i]}; }) / (1 << f.more.shift);
    for (u32 k = 0; k < f.elements; k += 16) {
      const int c = code<f.scale>(k);
      to.scales[k / 16] = static_cast<float>(d * (f.more.float_scale ? quant_float_scale(c) : c));
    }
    if constexpr (f.q.low.packing.trits) return digits(to);
    for (u32 k = 0; k < f.elements; k += 8) {
      if constexpr (has_grid) {
        const u64 v = eight(k);
        std::memcpy(to.numbers + k, &v, 8);
      } else if constexpr (in_runs()) {
        run(k, to.numbers + k);
      } else {
        for (u32 i = 0; i < 8; ++i) to.numbers[k + i] = level(code<f.q>(k + i));
      }
    }
  }
};

using Decode = void (*)(const u8*, DecodedBlock&);
template <QuantFormat F>
constexpr Decode decoder() {
  if constexpr (can_decode(info(F))) return [](const u8* p, DecodedBlock& to) { Block<F>{p}.decode(to); };
  else return nullptr;
}
constexpr auto kDecoders = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<Decode, sizeof...(I)>{decoder<kQuantFormats[I].format>()...};
}(std::make_index_sequence<std::size(kQuantFormats)>());

}  // namespace

void decode_block(QuantFormat format, const std::uint8_t* block, DecodedBlock& to) {
  kDecoders[static_cast<std::size_t>(format)](block, to);
}

}  // namespace lc
