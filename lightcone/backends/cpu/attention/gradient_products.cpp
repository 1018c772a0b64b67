#include "lightcone/backends/cpu/attention/gradient_products.h"

#include <cstddef>
#include <cstring>

#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {

using i64 = std::int64_t;

void GradientProducts::scores(const GradientBlock& b) const {
  const i64 mr = rows();
  begin_scores(b);
  for (i64 panel = 0; panel < b.keys; panel += kPanel)
    for (i64 r = 0; r < b.rows; r += mr) {
      const i64 count = std::min(mr, b.rows - r), needed = round_up(b.needed(b.first + r + count, mr), kLanes);
      if (needed > panel) score(b, r, count, panel, std::min(kPanel, needed - panel));
    }
  end();
}

void GradientProducts::gradients(const GradientBlock& b) const {
  const i64 mr = rows(), last = b.all ? b.keys : std::min(b.keys, b.first + b.rows);
  begin_gradients(b);
  for (i64 r = 0; r < b.rows; r += mr) {
    const i64 count = std::min(mr, b.rows - r);
    to_queries(b, r, count, b.needed(b.first + r + count, mr));
  }
  for (i64 key = 0; key < last; key += mr) {
    // the first query from which on the keys may be seen, as a number of whole tiles
    const i64 from = b.all ? 0 : std::clamp<i64>(key - b.first, 0, b.rows) / mr * mr;
    to_keys(b, key, std::min(mr, b.keys - key), from);
  }
  end();
}

namespace {

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

 private:
  void score(const GradientBlock& b, i64 r, i64 count, i64 key, i64 columns) const override;
  void to_queries(const GradientBlock& b, i64 r, i64 count, i64 keys) const override;
  void to_keys(const GradientBlock& b, i64 key, i64 count, i64 from) const override;
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

void InPlace::score(const GradientBlock& b, i64 r, i64 count, i64 key, i64 columns) const {
  const float *k = b.packed, *v = b.packed + round_up(b.keys, kPanel) * b.depth;
  t_.products(b.q + (b.first + r) * b.depth, b.depth, 1, k + key * b.depth, kPanel, b.depth, b.scores + r * b.row + key,
              b.row, count, columns, false);
  t_.products(b.g + (b.first + r) * b.width, b.width, 1, v + key * b.width, kPanel, b.width, b.slopes + r * b.row + key,
              b.row, count, columns, false);
}

void InPlace::to_queries(const GradientBlock& b, i64 r, i64 count, i64 keys) const {
  t_.products(b.slopes + r * b.row, b.row, 1, b.k, b.depth, keys, b.dq + (b.first + r) * b.depth, b.depth, count,
              b.depth, false);
}

void InPlace::to_keys(const GradientBlock& b, i64 key, i64 count, i64 from) const {
  const i64 query = b.first + from;
  t_.products(b.slopes + from * b.row + key, 1, b.row, b.q + query * b.depth, b.depth, b.rows - from,
              b.dk + key * b.depth, b.depth, count, b.depth, true);
  t_.products(b.scores + from * b.row + key, 1, b.row, b.g + query * b.width, b.width, b.rows - from,
              b.dv + key * b.width, b.width, count, b.width, true);
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

 private:
  void begin_scores(const GradientBlock& b) const override;
  void begin_gradients(const GradientBlock& b) const override;
  void score(const GradientBlock& b, i64 r, i64 count, i64 key, i64 columns) const override;
  void to_queries(const GradientBlock& b, i64 r, i64 count, i64 keys) const override;
  void to_keys(const GradientBlock& b, i64 key, i64 count, i64 from) const override;
  void end() const override {
    if (u_.end) u_.end();
  }

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

void Packed::begin_scores(const GradientBlock& b) const {
  const Places at(*this, b, b.rows);
  u_.pack_a(b.q + b.first * b.depth, b.depth, 1, b.rows, b.depth, 0, base(b) + at.q_rows);
  u_.pack_a(b.g + b.first * b.width, b.width, 1, b.rows, b.width, 0, base(b) + at.g_rows);
  if (u_.begin) u_.begin();
}

void Packed::score(const GradientBlock& b, i64 r, i64 count, i64 key, i64 columns) const {
  const Places at(*this, b, b.rows);
  const std::byte* from = base(b);
  const auto product = [&](i64 rows, i64 turned, i64 depth, float* to) {
    const i64 group = u_.b_bytes(depth);
    multiply(from + rows + r / u_.mr * u_.a_bytes(depth), from + turned + key / 16 * group, group, depth,
             to + r * b.row + key, b.row, count, round_up(columns, u_.nr), false);
  };
  product(at.q_rows, at.k_turned, b.depth, b.scores);
  product(at.g_rows, at.v_turned, b.width, b.slopes);
}

void Packed::begin_gradients(const GradientBlock& b) const {
  const Places at(*this, b, b.rows);
  pack_b(b.q + b.first * b.depth, b.depth, b.rows, 1, b.depth, base(b) + at.q);
  pack_b(b.g + b.first * b.width, b.width, b.rows, 1, b.width, base(b) + at.g);
  if (u_.begin) u_.begin();
}

void Packed::to_queries(const GradientBlock& b, i64 r, i64 count, i64 keys) const {
  const Places at(*this, b, b.rows);
  std::byte* strip = base(b) + at.strip;
  u_.pack_a(b.slopes + r * b.row, b.row, 1, count, keys, 0, strip);
  multiply(strip, base(b) + at.k, u_.b_bytes(b.keys), keys, b.dq + (b.first + r) * b.depth, b.depth, count, b.depth,
           false);
}

void Packed::to_keys(const GradientBlock& b, i64 key, i64 count, i64 from) const {
  const Places at(*this, b, b.rows);
  std::byte* strip = base(b) + at.strip;
  const i64 group = u_.b_bytes(b.rows), skip = u_.b_bytes(from), rows = b.rows - from;
  const auto add = [&](const float* weights, i64 packed, float* to, i64 columns) {
    u_.pack_a(weights + from * b.row + key, 1, b.row, count, rows, 0, strip);
    multiply(strip, base(b) + packed + skip, group, rows, to + key * columns, columns, count, columns, true);
  };
  add(b.slopes, at.q, b.dk, b.depth);
  add(b.scores, at.g, b.dv, b.width);
}

}  // namespace

std::shared_ptr<const GradientProducts> gradient_products(const AttentionGradientsTable& t) {
  return std::make_shared<InPlace>(t);
}
std::shared_ptr<const GradientProducts> gradient_products(const Microkernel& u) { return std::make_shared<Packed>(u); }

}  // namespace lc::backends::cpu
