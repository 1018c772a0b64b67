#include "lightcone/backends/cpu/attention/gradient_products.h"

#include <cstddef>
#include <cstring>

#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kPanel = 64;  // keys whose scores are computed before those of the next ones

// The first query from which on all keys from `key` on may be seen, as a number of whole tiles.
i64 first_row(const GradientBlock& b, i64 key, i64 tile) {
  return b.all ? 0 : std::clamp<i64>(key - b.first, 0, b.rows) / tile * tile;
}
i64 last_key(const GradientBlock& b) { return b.all ? b.keys : std::min(b.keys, b.first + b.rows); }

// ---- in f32, from operands in place; keys and values are transposed to panels -----------------------------

class InPlace final : public GradientProducts {
 public:
  explicit InPlace(const AttentionGradientsTable& t) : t_(t) {}
  i64 rows() const override { return t_.mr; }
  i64 floats(i64 keys, i64 depth, i64 width, i64) const override { return round_up(keys, kPanel) * (depth + width); }
  void pack(const GradientBlock& b) const override {
    turn_round(b.k, b.keys, b.depth, b.packed);
    turn_round(b.v, b.keys, b.width, b.packed + round_up(b.keys, kPanel) * b.depth);
  }
  void scores(const GradientBlock& b) const override;
  void gradients(const GradientBlock& b) const override;

 private:
  static void turn_round(const float* from, i64 rows, i64 n, float* to);

  const AttentionGradientsTable& t_;
};

// Transposes [rows][n] to panels of 64 rows, [n][64], padded with zeros.
void InPlace::turn_round(const float* from, i64 rows, i64 n, float* to) {
  for (i64 r0 = 0; r0 < rows; r0 += kPanel, to += kPanel * n) {
    const i64 some = std::min(kPanel, rows - r0);
    if (some < kPanel) std::fill_n(to, kPanel * n, 0.0f);
    for (i64 r = 0; r < some; ++r)
      for (i64 i = 0; i < n; ++i) to[i * kPanel + r] = from[(r0 + r) * n + i];
  }
}

void InPlace::scores(const GradientBlock& b) const {
  const i64 mr = t_.mr;
  const float *k = b.packed, *v = b.packed + round_up(b.keys, kPanel) * b.depth;
  for (i64 panel = 0; panel < b.keys; panel += kPanel)
    for (i64 r = 0; r < b.rows; r += mr) {
      const i64 m = std::min(mr, b.rows - r), end = round_up(b.needed(b.first + r + m, mr), kLanes);
      if (end <= panel) continue;
      const i64 columns = std::min(kPanel, end - panel), query = b.first + r;
      t_.products(b.q + query * b.depth, b.depth, 1, k + panel * b.depth, kPanel, b.depth, b.scores + r * b.row + panel,
                  b.row, m, columns, false);
      t_.products(b.g + query * b.width, b.width, 1, v + panel * b.width, kPanel, b.width, b.slopes + r * b.row + panel,
                  b.row, m, columns, false);
    }
}

void InPlace::gradients(const GradientBlock& b) const {
  const i64 mr = t_.mr;
  for (i64 r = 0; r < b.rows; r += mr) {
    const i64 m = std::min(mr, b.rows - r);
    t_.products(b.slopes + r * b.row, b.row, 1, b.k, b.depth, b.needed(b.first + r + m, mr),
                b.dq + (b.first + r) * b.depth, b.depth, m, b.depth, false);
  }
  for (i64 k = 0; k < last_key(b); k += mr) {
    const i64 m = std::min(mr, b.keys - k), from = first_row(b, k, mr), query = b.first + from;
    t_.products(b.slopes + from * b.row + k, 1, b.row, b.q + query * b.depth, b.depth, b.rows - from,
                b.dk + k * b.depth, b.depth, m, b.depth, true);
    t_.products(b.scores + from * b.row + k, 1, b.row, b.g + query * b.width, b.width, b.rows - from,
                b.dv + k * b.width, b.width, m, b.width, true);
  }
}

// ---- in bf16, from packed operands -----------------------------------------------------------------------

class Packed final : public GradientProducts {
 public:
  explicit Packed(const Microkernel& u) : u_(u) {}
  i64 rows() const override { return u_.mr; }
  i64 floats(i64 keys, i64 depth, i64 width, i64 queries) const override {
    return Places(*this, keys, depth, width, queries).bytes / 4;
  }
  void pack(const GradientBlock& b) const override;
  void scores(const GradientBlock& b) const override;
  void gradients(const GradientBlock& b) const override;

 private:
  // Where operands are, in bytes: those of a head, those of a block, and a strip of weights or slopes.
  struct Places {
    i64 k_turned, v_turned, k, q_rows, g_rows, q, g, strip, bytes = 64;
    Places(const Packed& p, i64 keys, i64 depth, i64 width, i64 queries) {
      const auto take = [&](i64 size) {
        const i64 here = bytes - 64;
        bytes += round_up(size, 64);
        return here;
      };
      const i64 padded = round_up(keys, kPanel), strips = (queries + p.u_.mr - 1) / p.u_.mr;
      k_turned = take(p.b_bytes(padded, depth)), v_turned = take(p.b_bytes(padded, width));
      k = take(p.b_bytes(depth, keys));
      q_rows = take(strips * p.u_.a_bytes(depth)), g_rows = take(strips * p.u_.a_bytes(width));
      q = take(p.b_bytes(depth, queries)), g = take(p.b_bytes(width, queries));
      strip = take(p.u_.a_bytes(std::max(keys, queries)));
    }
    Places(const Packed& p, const GradientBlock& b, i64 queries) : Places(p, b.keys, b.depth, b.width, queries) {}
  };
  i64 b_bytes(i64 columns, i64 depth) const { return (columns + 15) / 16 * u_.b_bytes(depth); }
  std::byte* base(const GradientBlock& b) const {
    const auto at = reinterpret_cast<std::uintptr_t>(b.packed);
    return reinterpret_cast<std::byte*>(b.packed) + (64 - at % 64) % 64;
  }
  // Packs B with `columns` columns, whose element (k, n) is b[n * b_n + k * b_k].
  void pack_b(const float* b, i64 columns, i64 depth, i64 b_n, i64 b_k, std::byte* to) const {
    const Gemm g{.n = columns, .k = depth, .b = b, .b_n = b_n, .b_k = b_k};
    u_.pack_b(&g, 0, columns, 0, depth, to, u_.b_bytes(depth));
  }
  // C[rows, columns] (+)= a strip times groups of 16 columns, `group` bytes apart.
  void multiply(const std::byte* strip, const std::byte* b, i64 group, i64 depth, float* c, i64 c_m, i64 rows,
                i64 columns, bool add) const {
    for (i64 n = 0; n < columns; n += u_.nr)
      u_.tile(strip, b + n / 16 * group, group, depth, c + n, c_m, rows, std::min<i64>(u_.nr, columns - n), add, strip);
  }
  void begin() const {
    if (u_.begin) u_.begin();
  }
  void end() const {
    if (u_.end) u_.end();
  }

  const Microkernel& u_;
};

void Packed::pack(const GradientBlock& b) const {
  const Places at(*this, b, 0);
  std::byte* to = base(b);
  const i64 groups = (b.keys + 15) / 16, padded = round_up(b.keys, kPanel) / 16;
  const auto turned = [&](const float* from, i64 depth, std::byte* groups_of) {
    pack_b(from, b.keys, depth, depth, 1, groups_of);
    std::memset(groups_of + groups * u_.b_bytes(depth), 0,
                static_cast<std::size_t>((padded - groups) * u_.b_bytes(depth)));
  };
  turned(b.k, b.depth, to + at.k_turned);
  turned(b.v, b.width, to + at.v_turned);
  pack_b(b.k, b.depth, b.keys, 1, b.depth, to + at.k);
}

void Packed::scores(const GradientBlock& b) const {
  const Places at(*this, b, b.rows);
  std::byte* to = base(b);
  const float *q = b.q + b.first * b.depth, *g = b.g + b.first * b.width;
  u_.pack_a(q, b.depth, 1, b.rows, b.depth, 0, to + at.q_rows);
  u_.pack_a(g, b.width, 1, b.rows, b.width, 0, to + at.g_rows);
  begin();
  for (i64 panel = 0; panel < b.keys; panel += kPanel)
    for (i64 r = 0; r < b.rows; r += u_.mr) {
      const i64 m = std::min<i64>(u_.mr, b.rows - r), end = round_up(b.needed(b.first + r + m, u_.mr), kLanes);
      if (end <= panel) continue;
      const i64 columns = std::min(kPanel, round_up(end - panel, u_.nr)), s = r / u_.mr;
      const i64 k_group = u_.b_bytes(b.depth), v_group = u_.b_bytes(b.width);
      multiply(to + at.q_rows + s * u_.a_bytes(b.depth), to + at.k_turned + panel / 16 * k_group, k_group, b.depth,
               b.scores + r * b.row + panel, b.row, m, columns, false);
      multiply(to + at.g_rows + s * u_.a_bytes(b.width), to + at.v_turned + panel / 16 * v_group, v_group, b.width,
               b.slopes + r * b.row + panel, b.row, m, columns, false);
    }
  end();
}

void Packed::gradients(const GradientBlock& b) const {
  const Places at(*this, b, b.rows);
  std::byte *to = base(b), *strip = to + at.strip;
  pack_b(b.q + b.first * b.depth, b.depth, b.rows, 1, b.depth, to + at.q);
  pack_b(b.g + b.first * b.width, b.width, b.rows, 1, b.width, to + at.g);
  begin();
  for (i64 r = 0; r < b.rows; r += u_.mr) {
    const i64 m = std::min<i64>(u_.mr, b.rows - r), depth = b.needed(b.first + r + m, u_.mr);
    u_.pack_a(b.slopes + r * b.row, b.row, 1, m, depth, 0, strip);
    multiply(strip, to + at.k, u_.b_bytes(b.keys), depth, b.dq + (b.first + r) * b.depth, b.depth, m, b.depth, false);
  }
  const i64 group = u_.b_bytes(b.rows);
  for (i64 k = 0; k < last_key(b); k += u_.mr) {
    const i64 m = std::min<i64>(u_.mr, b.keys - k), from = first_row(b, k, u_.mr), skip = u_.b_bytes(from);
    u_.pack_a(b.slopes + from * b.row + k, 1, b.row, m, b.rows - from, 0, strip);
    multiply(strip, to + at.q + skip, group, b.rows - from, b.dk + k * b.depth, b.depth, m, b.depth, true);
    u_.pack_a(b.scores + from * b.row + k, 1, b.row, m, b.rows - from, 0, strip);
    multiply(strip, to + at.g + skip, group, b.rows - from, b.dv + k * b.width, b.width, m, b.width, true);
  }
  end();
}

}  // namespace

std::shared_ptr<const GradientProducts> gradient_products(const AttentionGradientsTable& t) {
  return std::make_shared<InPlace>(t);
}
std::shared_ptr<const GradientProducts> gradient_products(const Microkernel& u) { return std::make_shared<Packed>(u); }

}  // namespace lc::backends::cpu
