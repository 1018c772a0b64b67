#include "lightcone/backends/cpu/products/apart.h"

#include <algorithm>

#include "lightcone/backends/cpu/kernels/abi/long_sums.h"

namespace lc::backends::cpu::products {
namespace {

constexpr i64 kLeastStrips = 8, kMostStrips = 64;  // strips of A that a worker packs at a time
constexpr i64 kColumnsAtOnce = 512;                // columns whose sums wait for the next block of k
constexpr i64 kLongColumns = 128;                  // the same for long sums, which need three blocks
constexpr i64 kMostTiles = 128;                    // tiles whose sums wait at a time
constexpr i64 kWholeRows = 512;                    // columns of a result that is written in rows
constexpr i64 kFewSteps = 8;                       // steps of k that take less time than to write their results
static_assert(kLeastStrips * kColumnsAtOnce / 32 <= kMostTiles && kMostStrips <= kMostTiles);

bool long_sums(const Gemm& g, const Microkernel& u) { return g.k > kLongSum && !u.exact(); }

// What a worker has in its caches at a time.
struct Blocks {
  i64 strips;               // strips of A, whose packed k take half of L2
  i64 columns;              // columns of C
  i64 depth;                // k: all of it, unless half of L2 would have too few strips
  bool whole_rows = false;  // all columns of a strip come before the next strip
  Blocks(const Job& j) : columns(j.u->nr), depth(j.g->k) {
    const Gemm& g = *j.g;
    const Microkernel& u = *j.u;
    const i64 chunk = j.depth, half = g.caches.l2 / 2, strip = std::max<i64>(u.a_bytes(g.k), 1);
    strips = std::clamp(half / strip, kLeastStrips, kMostStrips);
    // With few k there are few products for each number of a result that is in no cache. Its rows, and those of what
    // the epilogue adds, are then run through as they lie in memory.
    const i64 widest = std::min(kWholeRows, half / std::max<i64>(1, u.b_bytes(g.k)) * kGroup / u.nr * u.nr);
    const bool few = g.k <= chunk && (g.finish_apart || u.steps(g.k) <= kFewSteps);
    whole_rows = few && !j.unpacks && g.m * g.n * 4 > g.caches.l2 && widest > u.nr;
    if (whole_rows) columns = widest;
    if (whole_rows || (kLeastStrips * strip <= half && !long_sums(g, u))) return;
    strips = kLeastStrips, depth = std::max<i64>(1, half / 2 / (strips * u.a_bytes(chunk))) * chunk;
    columns = long_sums(g, u) ? kLongColumns : kColumnsAtOnce;
  }
};

// The columns of some strips of A, whose packed k are there.
class Strips {
 public:
  // At `a` are `packed` strips of A for a chunk of k, then for the next; `first` is number `offset` among them.
  Strips(const Job& j, const Blocks& blocks, i64 first, i64 last, const std::byte* a, i64 packed, i64 offset,
         float* sums)
      : j_(j),
        g_(*j.g),
        u_(*j.u),
        blocks_(blocks),
        first_(first),
        last_(last),
        a_(a),
        packed_(packed),
        offset_(offset),
        sums_(sums),
        long_(long_sums(g_, u_)),
        streamed_(streams()) {}

  // Columns [c0, c1), of a task that ends with column `end`.
  void run(i64 c0, i64 c1, i64 end) const {
    if (blocks_.whole_rows) return run_rows(c0, c1, end);
    alignas(64) std::byte unpacked[2 * kPanelDepth];
    const i64 together = j_.unpacks ? last_ - first_ : u_.together;  // a chunk of B is repacked once
    for (i64 k0 = 0; k0 < g_.k; k0 += blocks_.depth) {
      const i64 k1 = std::min(g_.k, k0 + blocks_.depth);
      for (i64 c = c0; c < c1; c += u_.nr) {
        Ahead ahead = what_follows(c0, c, c1, end, k0, k1);
        for (i64 s = first_; s < last_; s += together) {
          const i64 s_end = std::min(last_, s + together);
          float* const sums = sums_ + (one_block() ? 0 : ((c - c0) / u_.nr * (last_ - first_) + s - first_) * tile());
          for (i64 k = k0; k < k1; k += j_.depth) chunk(s, s_end, c, end, k, unpacked, sums, ahead);
          if (k1 == g_.k) put(s, s_end, c, end, sums);
        }
      }
    }
  }

 private:
  i64 tile() const { return u_.mr * u_.nr; }
  bool one_block() const { return blocks_.depth >= g_.k; }
  i64 row(i64 s) const { return j_.i0 + j_.strips.begin(s); }
  float* c_at(i64 s, i64 c) const { return g_.c + row(s) * g_.c_m + j_.j0 + c; }
  // A result that no cache holds, and that nobody reads at once, is written past the caches.
  bool streams() const { return !g_.finish && !g_.finish_apart && !g_.to_f32 && g_.m * g_.n * 4 > g_.caches.l2; }
  // Tiles put their sums straight into a C that is in the caches, if one chunk has all of k.
  bool direct(i64 s, i64 columns) const {
    return !g_.finish_apart && g_.k <= j_.depth && g_.m * g_.n * 4 <= g_.caches.l2 && j_.strips.size(s) == u_.mr &&
           columns == u_.nr;
  }

  // B that is read next: nothing if all of B fits into a cache.
  Ahead what_follows(i64 c0, i64 c, i64 c1, i64 end, i64 k0, i64 k1) const {
    Ahead a{nullptr, nullptr, stored_bytes(j_, g_.k), 1, 0, u_.steps(j_.depth) * u_.fetched};
    if ((j_.columns + kGroup - 1) / kGroup * a.group <= g_.caches.l2 / 2) return a;
    const bool more = c + u_.nr < c1, again = !more && k1 < g_.k;
    const i64 next = more ? c + u_.nr : again ? c0 : c1;
    if (next >= end) return a;
    const i64 k = more ? k0 : again ? k1 : 0, depth = std::min(blocks_.depth, g_.k - k);
    a.b = stored(j_, next, k), a.depth_bytes = stored_bytes(j_, depth);
    a.groups = std::min<i64>(u_.nr, end - next + kGroup - 1) / kGroup;
    return a;
  }

  // As run(), a strip after the other: its A stays in L1, and B in L2.
  void run_rows(i64 c0, i64 c1, i64 end) const {
    const i64 wide = (c1 - c0 + u_.nr - 1) / u_.nr * u_.nr, group = stored_bytes(j_, g_.k);
    for (i64 s = first_; s < last_; ++s) {
      const i64 rows = j_.strips.size(s) <= u_.mr / 2 ? u_.mr / 2 : u_.mr;
      const std::byte* const a = a_ + (offset_ + s - first_) * u_.a_bytes(g_.k);
      for (i64 c = c0; c < c1; c += u_.nr)
        u_.tile(a, stored(j_, c, 0), end - c <= u_.nr - kGroup ? 0 : group, g_.k, sums_ + (c - c0), wide, rows, u_.nr,
                false, nullptr);
      if (g_.finish_apart)
        g_.finish_apart(g_.finish_self, c_at(s, 0) - j_.j0, j_.strips.size(s), j_.j0 + c0, j_.j0 + c1, sums_, wide);
      else u_.put_sums(sums_, wide, c_at(s, c0), g_.c_m, j_.strips.size(s), c1 - c0, streamed_);
    }
  }

  // Adds the products of one chunk of k to the sums of strips [s, s_end).
  void chunk(i64 s, i64 s_end, i64 c, i64 end, i64 k, std::byte* unpacked, float* sums, Ahead& ahead) const {
    const i64 depth = std::min(j_.depth, g_.k - k), columns = std::min<i64>(u_.nr, end - c), n = k / j_.depth;
    const std::byte* b = unpacked;
    i64 group = u_.b_bytes(depth);
    if (j_.unpacks) u_.pack_b(&g_, j_.j0 + c, columns, k, depth, unpacked, group);
    else b = stored(j_, c, k), group = stored_bytes(j_, g_.k);
    if (columns <= u_.nr - kGroup) group = 0;  // the last group does not exist: another one's sums are not put into C
    const std::byte* a = a_ + packed_ * u_.a_bytes(k) + (offset_ + s - first_) * u_.a_bytes(depth);
    for (; s < s_end; ++s, a += u_.a_bytes(depth), sums += tile()) {
      if (direct(s, columns)) {
        u_.tile(a, b, group, depth, c_at(s, c), g_.c_m, u_.mr, u_.nr, false, ahead.next());
        continue;
      }
      const i64 rows = j_.strips.size(s) <= u_.mr / 2 ? u_.mr / 2 : u_.mr;
      u_.tile(a, b, group, depth, sums, u_.nr, rows, u_.nr, long_ ? n % kSumsOfTiles > 0 : n > 0, ahead.next());
      const bool ends = k + depth == g_.k;
      if (long_ && (ends || n % kSumsOfTiles == kSumsOfTiles - 1))
        add_blocks(total(sums), 0, lost(sums), sums, 1, tile(), n < kSumsOfTiles, ends);
    }
  }
  // A long sum has been summed so far, and has lost so much to rounding.
  float* total(float* sums) const { return sums + kMostTiles * tile(); }
  float* lost(float* sums) const { return sums + 2 * kMostTiles * tile(); }

  void put(i64 s, i64 s_end, i64 c, i64 end, float* sums) const {
    const i64 columns = std::min<i64>(u_.nr, end - c);
    for (; s < s_end; ++s, sums += tile()) {
      const float* done = long_ ? total(sums) : sums;
      if (g_.finish_apart)
        g_.finish_apart(g_.finish_self, c_at(s, 0) - j_.j0, j_.strips.size(s), j_.j0 + c, j_.j0 + c + columns, done,
                        u_.nr);
      else if (!direct(s, columns)) u_.put_sums(done, u_.nr, c_at(s, c), g_.c_m, j_.strips.size(s), columns, streamed_);
    }
  }

  const Job& j_;
  const Gemm& g_;
  const Microkernel& u_;
  const Blocks& blocks_;
  i64 first_, last_;
  const std::byte* a_;
  i64 packed_, offset_;
  float* sums_;
  bool long_, streamed_;
};

}  // namespace

i64 apart_sums_bytes(const Gemm& g, const Microkernel& u) {
  const i64 tiles = ((g.m + u.mr - 1) / u.mr) * ((g.n + u.nr - 1) / u.nr);
  return (g.k > kLongSum ? 3 * kMostTiles : std::min(std::max<i64>(tiles, u.together), kMostTiles)) * 4 * u.mr * u.nr;
}
i64 apart_own_bytes(const Gemm& g, const Microkernel& u) {
  const i64 strip = u.a_bytes(g.k), all = (g.m + u.mr - 1) / u.mr * strip;
  return (std::min(all, std::max(g.caches.l2 / 2, kLeastStrips * strip)) + 63) / 64 * 64;
}

// Fewest strips and tiles for the slowest worker; then fewest operands, of which a strip of A, which is packed, counts
// as four tiles' B.
Grid apart_grid(i64 strips, i64 tiles, i64 workers) {
  Grid best;
  i64 least[2] = {-1, -1};
  for (i64 down = 1; down <= workers; ++down) {
    if (workers % down) continue;
    const i64 across = workers / down, high = (strips + down - 1) / down, wide = (tiles + across - 1) / across;
    const i64 cost[2] = {high * wide, 4 * high + wide};
    if (least[0] >= 0 && !std::lexicographical_compare(cost, cost + 2, least, least + 2)) continue;
    best = {down, across}, std::copy_n(cost, 2, least);
  }
  return best;
}

void compute_apart(const Job& j, i64 s0, i64 s1, i64 c0, i64 c1, std::byte* own, std::byte* sums) {
  const Gemm& g = *j.g;
  const Microkernel& u = *j.u;
  const Blocks blocks(j);
  const Even parts{s1 - s0, (s1 - s0 + blocks.strips - 1) / blocks.strips};
  for (i64 p = 0; p < parts.parts; ++p) {
    const i64 first = s0 + parts.begin(p), last = s0 + parts.begin(p + 1);
    for (i64 k = 0; own && k < g.k; k += j.depth)
      pack_strips(j, first, last, k, std::min(j.depth, g.k - k), nullptr, own + (last - first) * u.a_bytes(k));
    const Strips strips(j, blocks, first, last, own ? own : j.a, own ? last - first : j.strips.parts, own ? 0 : first,
                        reinterpret_cast<float*>(sums));
    for (i64 c = c0; c < c1; c += blocks.columns) strips.run(c, std::min(c1, c + blocks.columns), c1);
    const i64 i0 = j.i0 + j.strips.begin(first);
    finish(g, i0, j.i0 + j.strips.begin(last) - i0, j.j0 + c0, j.j0 + c1);
  }
}

}  // namespace lc::backends::cpu::products
