#include "lightcone/backends/cpu/products/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "lightcone/core/dtype.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
using u8 = std::uint8_t;
constexpr int kRows = PackedLayout::rows;

std::uint64_t eight_bytes(const u8* p) {
  std::uint64_t x;
  std::memcpy(&x, p, 8);
  return x;
}
// The functions below gather one bit field from each of eight bytes into adjacent bits.
std::uint32_t nibbles_of(const u8* p, int shift) {
  std::uint64_t x = eight_bytes(p) >> shift & 0x0f0f0f0f0f0f0f0full;
  x = (x | x >> 4) & 0x00ff00ff00ff00ffull;
  x = (x | x >> 8) & 0x0000ffff0000ffffull;
  return static_cast<std::uint32_t>(x | x >> 16);
}
std::uint32_t pairs_of(const u8* p, int shift) {
  std::uint64_t x = eight_bytes(p) >> shift & 0x0303030303030303ull;
  x = (x | x >> 6) & 0x000f000f000f000full;
  x = (x | x >> 12) & 0x000000ff000000ffull;
  return static_cast<std::uint32_t>(x | x >> 24) & 0xffff;
}
std::uint32_t bits_of(const u8* p, int shift) {
  return static_cast<std::uint32_t>((eight_bytes(p) >> shift & 0x0101010101010101ull) * 0x0102040810204080ull >> 56);
}

// The packed block of one row: the destination of its values, in this row's lane.
struct Lane {
  u8* block;
  int row;
  PackedLayout layout;
  u8* step(int s) const { return block + layout.header + s * layout.step_bytes(); }
  void half(int which, const u8* from) const { std::memcpy(block + (which * kRows + row) * 2, from, 2); }
  void scale(int s, int which, u8 v) const { step(s)[which * kRows + row] = v; }
  void scales(int word, std::uint32_t v) const { put(block + 4 * kRows, word, v); }
  void codes(int s, int word, std::uint32_t v) const { put(step(s) + layout.scales, word, v); }
  void high(int s, int word, std::uint32_t v) const { put(step(s) + layout.scales + layout.codes, word, v); }

 private:
  void put(u8* at, int word, std::uint32_t v) const { std::memcpy(at + (word * kRows + row) * 4, &v, 4); }
};

constexpr const QuantInfo &kQ4_0 = info(QuantFormat::Q4_0), &kQ8_0 = info(QuantFormat::Q8_0),
                          &kQ4_K = info(QuantFormat::Q4_K), &kQ5_K = info(QuantFormat::Q5_K),
                          &kQ6_K = info(QuantFormat::Q6_K);

void pack_q8_0(const u8* p, const Lane& to) {
  to.half(0, p + kQ8_0.d);
  for (int v = 0; v < 8; ++v) {
    std::uint32_t codes;
    std::memcpy(&codes, p + kQ8_0.q.low.at + 4 * v, 4);
    to.codes(0, v, codes ^ 0x80808080u);
  }
}
void pack_q4_0(const u8* p, const Lane& to) {
  to.half(0, p + kQ4_0.d);
  for (int v = 0; v < 4; ++v) to.codes(0, v, nibbles_of(p + kQ4_0.q.low.at + v % 2 * 8, v / 2 * 4));
}
// Packs Q4_K, or Q5_K with its fifth bits.
void pack_q45_k(const u8* p, const u8* fifth, const u8* codes, const Lane& to) {
  to.half(0, p + kQ4_K.d), to.half(1, p + kQ4_K.d_min);
  for (int word = 0; word < 3; ++word) {
    std::uint32_t of_four;
    std::memcpy(&of_four, p + kQ4_K.scale.low.at + 4 * word, 4);
    to.scales(word, of_four);
  }
  for (int s = 0; s < 8; ++s) {
    for (int v = 0; v < 4; ++v) to.codes(s, v, nibbles_of(codes + s / 2 * 32 + v * 8, s % 2 * 4));
    if (!fifth) continue;
    std::uint32_t bits = 0;
    for (int v = 0; v < 4; ++v) bits |= bits_of(fifth + v * 8, s) << (8 * v);
    to.high(s, 0, bits);
  }
}
void pack_q6_k(const u8* p, const Lane& to) {
  const u8* scales = p + kQ6_K.scale.low.at;
  to.half(0, p + kQ6_K.d);
  for (int s = 0; s < 8; ++s) {
    to.scale(s, 0, scales[2 * s]), to.scale(s, 1, scales[2 * s + 1]);
    const u8 *low = p + kQ6_K.q.low.at + s / 4 * 64 + s % 2 * 32, *high = p + kQ6_K.q.high.at + s / 4 * 32;
    for (int v = 0; v < 4; ++v) to.codes(s, v, nibbles_of(low + v * 8, s % 4 / 2 * 4));
    for (int v = 0; v < 2; ++v)
      to.high(s, v, pairs_of(high + v * 16, s % 4 * 2) | pairs_of(high + v * 16 + 8, s % 4 * 2) << 16);
  }
}
void pack_q4_k(const u8* p, const Lane& to) { pack_q45_k(p, nullptr, p + kQ4_K.q.low.at, to); }
void pack_q5_k(const u8* p, const Lane& to) { pack_q45_k(p, p + kQ5_K.q.high.at, p + kQ5_K.q.low.at, to); }

using PackBlock = void (*)(const u8* p, const Lane& to);
// The packing function of a block format; empty for other types. It is optional, not a pointer, because GCC 12 rejects
// null comparisons in constants (weight_type.h).
constexpr std::optional<PackBlock> pack_block(WeightType t) {
  switch (t) {
    case WeightType::Q4_0: return pack_q4_0;
    case WeightType::Q8_0: return pack_q8_0;
    case WeightType::Q4_K: return pack_q4_k;
    case WeightType::Q5_K: return pack_q5_k;
    case WeightType::Q6_K: return pack_q6_k;
    default: return {};
  }
}
static_assert(std::all_of(kWeightFormats.begin(), kWeightFormats.end(), [](const WeightFormat& f) {
  return pack_block(f.type).has_value() == (is_quantised(f.type) && f.packed.block > 0);
}));

// Interleaves units (one weight, or a pair of neighbors) of up to 16 rows. Units are tiled so that the written lines
// stay in the cache.
template <class Unit>
void interleave(const u8* from, i64 row_bytes, i64 rows, i64 units, u8* to) {
  constexpr i64 kTile = 64, size = sizeof(Unit);
  for (i64 u0 = 0; u0 < units; u0 += kTile)
    for (i64 r = 0; r < rows; ++r)
      for (i64 u = u0; u < std::min(units, u0 + kTile); ++u)
        std::memcpy(to + (u * kRows + r) * size, from + r * row_bytes + u * size, size);
}
void pack_bytes(const u8* from, i64 rows, i64 k, u8* to) {
  for (i64 r = 0; r < rows; ++r)
    for (i64 e = 0; e < k; ++e) to[(e / 4 * kRows + r) * 4 + e % 4] = static_cast<u8>(from[r * k + e] ^ 0x80);
}
void pack_plain(WeightType t, const u8* from, i64 rows, i64 k, u8* to) {
  if (t == WeightType::I8) return pack_bytes(from, rows, k, to);
  if (t == WeightType::F16) return interleave<std::uint16_t>(from, 2 * k, rows, k, to);
  interleave<std::uint32_t>(from, 2 * k, rows, k / 2, to);
  if (k % 2)
    for (i64 r = 0; r < rows; ++r) std::memcpy(to + (k / 2 * kRows + r) * 4, from + (r * k + k - 1) * 2, 2);
}

class PackKernel final : public HostKernel {
 public:
  PackKernel(WeightType from, WeightType to, i64 n, i64 k, bool transposed)
      : type_(from), to_(to), n_(n), k_(k), transposed_(transposed) {}
  std::string name() const override { return "pack_" + std::string(lc::name(to_)); }
  void run(const HostLaunch& l) const override {
    struct Job {
      const PackKernel& k;
      const u8* from;
      u8* to;
    } job{*this, static_cast<const u8*>(l.in[0]), static_cast<u8*>(l.out)};
    l.parallel.run(
        static_cast<int>((n_ + kRows - 1) / kRows),
        [](void* arg, int group, int) {
          const Job& j = *static_cast<Job*>(arg);
          j.k.group(j.from, j.to, group);
        },
        &job);
  }

 private:
  void group(const u8* from, u8* to, i64 group) const {
    if (type_ == WeightType::F32) return f32_group(reinterpret_cast<const float*>(from), to, group);
    const PackedLayout layout = packed_layout(type_);
    const i64 bytes = layout.group_bytes(k_), first = group * kRows, rows = std::min<i64>(kRows, n_ - first);
    to += group * bytes;
    const QuantInfo* q = block_format(type_);
    if (rows < kRows || (!q && k_ % layout.block)) std::memset(to, 0, static_cast<std::size_t>(bytes));
    if (!q) return pack_plain(type_, from + first * k_ * unit_bytes(type_), rows, k_, to);
    const i64 blocks = k_ / layout.block;
    const PackBlock pack = *pack_block(type_);
    for (i64 b = 0; b < blocks; ++b)
      for (i64 r = 0; r < rows; ++r)
        pack(from + ((first + r) * blocks + b) * q->bytes,
             {to + b * layout.block_bytes(), static_cast<int>(r), layout});
  }
  void f32_group(const float* from, u8* to, i64 group) const {
    const i64 first = group * kRows, rows = std::min<i64>(kRows, n_ - first),
              bytes = packed_layout(to_).group_bytes(k_);
    const i64 n_stride = transposed_ ? 1 : k_, k_stride = transposed_ ? n_ : 1;
    from += first * n_stride, to += group * bytes;
    if (rows < kRows || k_ % 2) std::memset(to, 0, static_cast<std::size_t>(bytes));
    auto* half = reinterpret_cast<std::uint16_t*>(to);
    auto* full = reinterpret_cast<float*>(to);
    for (i64 k = 0; k < k_; ++k, from += k_stride)
      for (i64 r = 0; r < rows; ++r)
        if (to_ == WeightType::BF16) half[(k / 2 * kRows + r) * 2 + k % 2] = f32_to_bf16(from[r * n_stride]);
        else full[k * kRows + r] = from[r * n_stride];
  }
  WeightType type_, to_;
  i64 n_, k_;
  bool transposed_;
};

class PackForUnit final : public HostKernel {
 public:
  PackForUnit(const Microkernel& unit, WeightType from, i64 n, i64 k, bool transposed)
      : unit_(unit), from_(from), n_(n), k_(k), transposed_(transposed) {}
  std::string name() const override { return std::string("pack_") + unit_.name; }
  bool packs() const override { return true; }
  void run(const HostLaunch& l) const override {
    struct Job {
      const PackForUnit& k;
      Gemm g;
      std::byte* to;
    } job{*this, {}, static_cast<std::byte*>(l.out)};
    job.g.n = n_, job.g.k = k_, job.g.type = from_, job.g.b = l.in[0];
    job.g.b_n = transposed_ ? 1 : k_, job.g.b_k = transposed_ ? n_ : 1;
    const auto task = [](void* arg, int group, int) {
      const Job& j = *static_cast<Job*>(arg);
      const i64 bytes = j.k.unit_.b_bytes(j.k.k_), first = i64{group} * kRows;
      j.k.unit_.pack_b(&j.g, first, std::min<i64>(kRows, j.k.n_ - first), 0, j.k.k_, j.to + group * bytes, bytes);
    };
    l.parallel.run(static_cast<int>((n_ + kRows - 1) / kRows), task, &job);
  }

 private:
  const Microkernel& unit_;
  WeightType from_;
  i64 n_, k_;
  bool transposed_;
};

}  // namespace

std::shared_ptr<HostKernel> pack_for_unit_kernel(const Microkernel& unit, WeightType from, i64 n, i64 k,
                                                 bool transposed) {
  return std::make_shared<PackForUnit>(unit, from, n, k, transposed);
}

std::shared_ptr<HostKernel> pack_kernel(WeightType from, WeightType to, i64 n, i64 k, bool transposed) {
  return std::make_shared<PackKernel>(from, to, n, k, transposed);
}

}  // namespace lc::backends::cpu
