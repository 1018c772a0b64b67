// Panels of int8 products, from every block format as stored and as packed by weight_formats.h.
#pragma once

#include "lightcone/backends/cpu/kernels/dense/dense.inl.h"
#include "lightcone/backends/cpu/kernels/gemm/packed.inl.h"

namespace lc::backends::cpu {
namespace {

// A step of `Step` k for 16 columns. Scales of steps of 32 without minima are f16 in every format and stay f16, so that
// packed Q8_0 already has the layout of a panel.
template <int Step, bool Min>
struct PanelStep {
  static constexpr bool of_halves = Step == 32 && !Min;
  static constexpr int bits = Step == 32 ? (Min ? 5 : 8) : (Min ? 2 : 6);  // maximum bits of a code
  static constexpr int scale_bytes = kGroup * (of_halves ? 2 : 4);
  static constexpr int bytes = scale_bytes + (Min ? kGroup * 4 : 0) + kGroup * Step;
  std::byte* at;
  vf scale(int lane) const {
    if constexpr (of_halves) return halves(reinterpret_cast<const u8*>(at) + 2 * lane);
    else return load(reinterpret_cast<const float*>(at) + lane);
  }
  float* min() const { return reinterpret_cast<float*>(at + scale_bytes); }
  std::uint32_t* codes() const { return reinterpret_cast<std::uint32_t*>(at + scale_bytes + (Min ? kGroup * 4 : 0)); }
};
static_assert(PanelStep<32, false>::bytes == packed_layout(WeightType::Q8_0).block_bytes());
template <WeightType T>
using PanelStepOf = PanelStep<Codec<T>::scaled, int8_format(T).arithmetic == Arithmetic::Int8Step32Min ||
                                                    int8_format(T).arithmetic == Arithmetic::Int8Step16Min>;

// ---- as stored: 32 codes of one row at a time, transposed by words of four ---------------------

// Writes WIDTH codes as bytes, in the order of k.
template <WeightType T>
inline void code_bytes(const u8* block, int sub, int i, u8* to) {
  typedef u8 vb __attribute__((vector_size(WIDTH)));
  constexpr int mask = (1 << Codec<T>::bits) - 1, bias = Codec<T>::format.q.is_signed ? 128 : 0;
  const vi code = (Codec<T>::codes(block, sub, i) + bias) & mask;
#if WIDTH == 16
  auto v = reinterpret_cast<vb>(_mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(code)));
  if constexpr (is_reordered(T)) put_lanes(v, v, v, [](int i) { return i % 4 * 4 + i / 4; });
#else
  const vb v = __builtin_convertvector(code, vb);
#endif
  std::memcpy(to, &v, sizeof v);
}

// Transposes 16 rows of `Words` words to words of 16 rows.
template <int Words>
inline void transpose_words(const std::uint32_t (&from)[kGroup][Words], std::uint32_t* to) {
  constexpr int across = Words < WIDTH ? Words : WIDTH;
  for (int r = 0; r < kGroup; r += WIDTH)
    for (int w = 0; w < Words; w += across) {
      vf v[WIDTH] = {};
      for (int i = 0; i < WIDTH; ++i)
        if constexpr (Words % WIDTH == 0) v[i] = load(reinterpret_cast<const float*>(from[r + i] + w));
        else std::memcpy(&v[i], from[r + i], sizeof from[0]);
      transpose(v);
      for (int i = 0; i < across; ++i) store(reinterpret_cast<float*>(to + (w + i) * kGroup + r), v[i]);
    }
}

template <WeightType T>
void panel_from_blocks(const Gemm& g, i64 n, i64 count, i64 k0, i64 depth, std::byte* to) {
  using C = Codec<T>;
  using Panel = PanelStepOf<T>;
  static_assert(C::bits <= Panel::bits);
  constexpr int parts = kStep / C::scaled;  // steps of the panel per 32 k
  alignas(64) std::uint32_t rows[kGroup][8] = {};
  float a[parts][kGroup] = {}, b[parts][kGroup] = {};
  std::uint16_t d[kGroup] = {};
  for (i64 k = k0; k < k0 + depth; k += kStep) {
    const int sub = static_cast<int>(k % C::elements / kStep);
    for (i64 r = 0; r < count; ++r) {
      const u8* block = static_cast<const u8*>(g.b) + (n + r) * g.b_n + k / C::elements * C::size;
      const typename C::Scale s = C::scales(block);
      std::memcpy(&d[r], block + C::format.d, sizeof d[r]);  // the scale, if it is f16
      for (int p = 0; p < parts; ++p) a[p][r] = s.a[sub * parts + p], b[p][r] = -s.b[sub * parts + p];
      for (int i = 0; i < kStep; i += WIDTH) code_bytes<T>(block, sub, i, reinterpret_cast<u8*>(rows[r]) + i);
    }
    alignas(64) std::uint32_t words[8 * kGroup];
    transpose_words(rows, words);
    for (int p = 0; p < parts; ++p, to += Panel::bytes) {
      const Panel panel{to};
      std::memcpy(panel.at, Panel::of_halves ? static_cast<const void*>(d) : a[p], Panel::scale_bytes);
      if constexpr (Panel::bytes == PanelStep<C::scaled, true>::bytes) std::memcpy(panel.min(), b[p], sizeof b[p]);
      std::memcpy(panel.codes(), words + p * C::scaled / 4 * kGroup, C::scaled * kGroup);
    }
  }
}

// ---- packed: a lane is a row already; the bits of four codes spread over a word -----------------

// Spreads the four nibbles in the lower half of each word to one per byte.
inline vu spread_nibbles(vu x) {
  x &= 0xffffu;
  x = (x | x << 8) & 0x00ff00ffu;
  return (x | x << 4) & 0x0f0f0f0fu;
}
inline vu spread_pairs(vu x) {
  x &= 0xffu;
  x = (x | x << 12) & 0x000f000fu;
  return (x | x << 6) & 0x03030303u;
}
inline vu spread_bits(vu x) { return (x & 15u) * 0x00204081u & 0x01010101u; }

template <WeightType T>
void panel_from_packed(const Gemm& g, i64 n, i64 k0, i64 depth, std::byte* to) {
  using Step = PackedStep<T>;
  using Panel = PanelStepOf<T>;
  constexpr PackedLayout layout = Step::layout;
  const u8* group = static_cast<const u8*>(g.b) + n / PackedLayout::rows * layout.group_bytes(g.k);
  for (i64 k = k0; k < k0 + depth; k += kStep, to += Panel::bytes * (kStep / Step::scaled)) {
    for (int lane = 0; lane < kGroup; lane += WIDTH) {
      const Step step(group, k, lane);
      const u8* high = step.step + layout.scales + layout.codes + 4 * lane;
      for (int i = 0; i < kStep; i += 4) {
        const Panel panel{to + i / Step::scaled * Panel::bytes};
        if (i % Step::scaled == 0) {
          if constexpr (Panel::of_halves) std::memcpy(panel.at + 2 * lane, step.block + 2 * lane, 2 * WIDTH);
          else store(reinterpret_cast<float*>(panel.at) + lane, step.scale(i));
          if constexpr (Step::has_min) store(panel.min() + lane, -step.min());
        }
        constexpr int in_word = T == WeightType::Q8_0 ? 4 : 8;  // codes per word
        vu code = reinterpret_cast<vu>(words(step.step + layout.scales + i / in_word * 64 + 4 * lane));
        if constexpr (T != WeightType::Q8_0) code = spread_nibbles(code >> i % 8 * 4);
        if constexpr (T == WeightType::Q5_K) code |= spread_bits(reinterpret_cast<vu>(words(high)) >> i) << 4;
        if constexpr (T == WeightType::Q6_K)
          code |= spread_pairs(reinterpret_cast<vu>(words(high + i / 16 * 64)) >> i % 16 * 2) << 4;
        *reinterpret_cast<vu_stored*>(panel.codes() + i % Step::scaled / 4 * kGroup + lane) = code;
      }
    }
  }
}

void pack_b_int8(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  auto* out = static_cast<std::byte*>(to);
  for (i64 j = 0; j < columns; j += kGroup, out += b_group)
    if (g.packed)
      with_packed_type(g.type, [&]<WeightType T>() {
        if constexpr (is_quantised(T)) panel_from_packed<T>(g, j0 + j, k0, depth, out);
      });
    else
      with_type(g.type, [&]<WeightType T>() {
        if constexpr (has_codec(T)) panel_from_blocks<T>(g, j0 + j, std::min<i64>(kGroup, columns - j), k0, depth, out);
      });
}

}  // namespace
}  // namespace lc::backends::cpu
