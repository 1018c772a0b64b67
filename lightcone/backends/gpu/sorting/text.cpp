#include "lightcone/backends/gpu/sorting/text.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "lightcone/codegen/c/text.h"
#include "lightcone/codegen/simt/filled.h"

namespace lc::backends::gpu {
namespace {

using codegen::simt::filled;
using std::to_string;

constexpr int kItems = kSortTile / kSortThreads;  // elements of a thread

std::string key_type(DType t) { return key_bytes(t) == 8 ? "u64" : "u32"; }
std::string position_type(const Sort& s) { return s.needs_64bit_index ? "u64" : "u32"; }
std::string stored_type(DType t) { return std::string(info(t).c); }

// Returns the statement that stores the key of register `x` in key[u].
std::string make_key(const Sort& s) {
  const bool eight = key_bytes(s.type) == 8;
  const std::string top = eight ? "0x8000000000000000UL" : "0x80000000u", type = key_type(s.type),
                    down = s.descending ? "~" : "";
  if (!is_float(s.type)) {
    const bool has_sign = s.type != DType::Bool && info(s.type).lowest != 0;
    return "key[u] = " + down + "((" + type + ")x" + (has_sign ? " ^ " + top : "") + ");";
  }
  const std::string infinity = eight ? "0x7ff0000000000000UL" : "0x7f800000u";
  return filled(
      R"({
        const $KEY bits = $BITS(x), size = bits & ~$TOP;
        key[u] = $DOWN(size > $INFINITY ? ~($KEY)0 : size == 0 ? $TOP : bits & $TOP ? ~bits : bits | $TOP);
      })",
      {{"KEY", type}, {"BITS", eight ? "lc_bits_d" : "lc_bits"}, {"TOP", top}, {"INFINITY", infinity}, {"DOWN", down}});
}

// Finds, between `low` and `high` of the keys in shared memory, the first that does not come before key[u]. Equal keys
// come before it if it is of the second run.
constexpr std::string_view kSearch = R"(
      while (low < high) {
        const int middle = (low + high) / 2;
        const $KEY there = keys[middle];
        if (there < key[u] || (second && there == key[u])) low = middle + 1;
        else high = middle;
      })";

constexpr std::string_view kTiles = R"(
  LC_SHARED($KEY, keys, $TILE);
  LC_SHARED(u16, positions, $TILE);
  const int t = LC_THREAD;
  const long tiles = (n1 + $SPAN - 1) / $SPAN;
  const int longest = n1 < $SPAN ? (int)n1 : $SPAN;
  $KEY key[$ITEMS];
  int position[$ITEMS], to[$ITEMS], count[$ITEMS];
  LC_UNROLL
  for (int u = 0; u < $ITEMS; ++u) {
    const int s = u * $THREADS + t, p = s % $SPAN;
    const long tile = (long)LC_GROUP * ($TILE / $SPAN) + s / $SPAN, row = tile / tiles, first = tile % tiles * $SPAN;
    count[u] = row >= n0 * n2 ? 0 : n1 - first < $SPAN ? (int)(n1 - first) : $SPAN;
    if (p < count[u]) {
      const $REGISTER x = $LOADED;
      $MAKE_KEY
      keys[s] = key[u];
      positions[s] = (u16)p;
    }
  }
  for (int width = 1; width < longest; width *= 2) {
    LC_BARRIER;
    LC_UNROLL
    for (int u = 0; u < $ITEMS; ++u) {
      const int s = u * $THREADS + t, p = s % $SPAN, run = p & -width, other = run ^ width;
      const bool second = other < run;
      if (p >= count[u]) continue;
      key[u] = keys[s];
      position[u] = positions[s];
      const int begin = s - p + (other < count[u] ? other : count[u]);
      const int end = s - p + (other + width < count[u] ? other + width : count[u]);
      int low = begin, high = end;$SEARCH
      to[u] = s - p + (second ? other : run) + (p - run) + (low - begin);
    }
    LC_BARRIER;
    LC_UNROLL
    for (int u = 0; u < $ITEMS; ++u)
      if ((u * $THREADS + t) % $SPAN < count[u]) {
        keys[to[u]] = key[u];
        positions[to[u]] = (u16)position[u];
      }
  }
  LC_BARRIER;
  LC_UNROLL
  for (int u = 0; u < $ITEMS; ++u) {
    const int s = u * $THREADS + t, p = s % $SPAN;
    if (p >= count[u]) continue;
    const long tile = (long)LC_GROUP * ($TILE / $SPAN) + s / $SPAN, row = tile / tiles, first = tile % tiles * $SPAN;
    if (n4) {
      out[(row / n2 * n1 + p) * n2 + row % n2] = positions[s];
    } else {
      keys_to[row * n1 + first + p] = keys[s];
      positions_to[row * n1 + first + p] = ($POSITION)first + positions[s];
    }
  }
}
)";

// Threads 0 and 1 find where the tile begins and where it ends in the first run.
constexpr std::string_view kMerge = R"(
  LC_SHARED($KEY, keys, $TILE);
  LC_SHARED(long, cut, 2);
  const int t = LC_THREAD;
  const long tiles = (n1 + $TILE - 1) / $TILE, row = (long)LC_GROUP / tiles, first = (long)LC_GROUP % tiles * $TILE;
  const long begin = first / (2 * n3) * (2 * n3), rest = n1 - begin;
  const long left = rest < n3 ? rest : n3, right = rest - left < n3 ? rest - left : n3;
  LC_GLOBAL const $KEY* const a = keys_from + row * n1 + begin;
  LC_GLOBAL const $KEY* const b = a + left;
  const long until = first - begin + $TILE < left + right ? first - begin + $TILE : left + right;
  if (t < 2) {
    const long d = t ? until : first - begin;
    long low = d < right ? 0 : d - right, high = d < left ? d : left;
    while (low < high) {
      const long middle = (low + high) / 2;
      if (a[middle] <= b[d - 1 - middle]) low = middle + 1;
      else high = middle;
    }
    cut[t] = low;
  }
  LC_BARRIER;
  const long from_a = cut[0], from_b = first - begin - from_a;
  const int count = (int)(until - (first - begin)), of_a = (int)(cut[1] - from_a);
  $KEY key[$ITEMS];
  $POSITION position[$ITEMS];
  LC_UNROLL
  for (int u = 0; u < $ITEMS; ++u) {
    const int s = u * $THREADS + t;
    if (s < count) {
      const long from = row * n1 + begin + (s < of_a ? from_a + s : left + from_b + (s - of_a));
      keys[s] = key[u] = keys_from[from];
      position[u] = positions_from[from];
    }
  }
  LC_BARRIER;
  LC_UNROLL
  for (int u = 0; u < $ITEMS; ++u) {
    const int s = u * $THREADS + t;
    if (s < count) {
      const bool second = s >= of_a;
      int low = second ? 0 : of_a, high = second ? of_a : count;$SEARCH
      const long p = first + s + low - of_a;
      if (n4) {
        out[(row / n2 * n1 + p) * n2 + row % n2] = (long)position[u];
      } else {
        keys_to[row * n1 + p] = key[u];
        positions_to[row * n1 + p] = position[u];
      }
    }
  }
}
)";

constexpr std::string_view kScatter = R"(
  const long t = (long)LC_GROUP * $THREADS + LC_THREAD;
  if (t >= n0 * n2 * n3) return;
  const long o = t / (n2 * n3), p = t / n3 % n2, i = t % n3;
  LC_GLOBAL const long* const sorted = order + o * n2 * $ORDERED + $COLUMN;
  LC_GLOBAL const $INDEX* const where = index + o * n2 * n3 + $COLUMN;
  long k = sorted[p * $ORDERED];
  const long j = (long)where[k * n3];
  if (j < 0 || j >= n1 || (p > 0 && (long)where[sorted[(p - 1) * $ORDERED] * n3] == j)) return;
  $REGISTER sum = $OLD;
  for (long q = p;;) {
    sum = $NEXT;
    if (++q == n2) break;
    k = sorted[q * $ORDERED];
    if ((long)where[k * n3] != j) break;
  }
  $TO = ($TYPE)$STORED;
}
)";

std::string search(DType t) { return filled(kSearch, {{"KEY", key_type(t)}}); }

}  // namespace

int sort_span(std::int64_t longest) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(longest, 1, kSortTile))));
}

std::size_t key_bytes(DType t) { return size_of(t) == 8 ? 8 : 4; }

std::string sort_tiles_text(const Sort& s, std::string_view name, codegen::simt::Language language) {
  const codegen::simt::Parameter parameters[] = {{stored_type(s.type), "in"},
                                                 {key_type(s.type), "keys_to", true},
                                                 {position_type(s), "positions_to", true},
                                                 {"long", "out", true}};
  return codegen::simt::begin_kernel(language, name, kSortThreads, parameters, kTileSizes, "long") +
         filled(kTiles, {{"MAKE_KEY", make_key(s)},
                         {"LOADED", codegen::loaded_as(s.type, "in[(row / n2 * n1 + first + p) * n3 + row % n2]")},
                         {"REGISTER", std::string(codegen::register_type(s.type))},
                         {"SEARCH", search(s.type)},
                         {"KEY", key_type(s.type)},
                         {"POSITION", position_type(s)},
                         {"TILE", to_string(kSortTile)},
                         {"SPAN", to_string(s.span)},
                         {"ITEMS", to_string(kItems)},
                         {"THREADS", to_string(kSortThreads)}});
}

std::string merge_text(const Sort& s, std::string_view name, codegen::simt::Language language) {
  const codegen::simt::Parameter parameters[] = {{key_type(s.type), "keys_from"},
                                                 {position_type(s), "positions_from"},
                                                 {key_type(s.type), "keys_to", true},
                                                 {position_type(s), "positions_to", true},
                                                 {"long", "out", true}};
  return codegen::simt::begin_kernel(language, name, kSortThreads, parameters, kMergeSizes, "long") +
         filled(kMerge, {{"SEARCH", search(s.type)},
                         {"KEY", key_type(s.type)},
                         {"POSITION", position_type(s)},
                         {"TILE", to_string(kSortTile)},
                         {"ITEMS", to_string(kItems)},
                         {"THREADS", to_string(kSortThreads)}});
}

std::string scatter_text(const Scatter& s, std::string_view name, codegen::simt::Language language) {
  const DType t = s.type;
  const codegen::simt::Parameter parameters[] = {
      {stored_type(s.index), "index"}, {"long", "order"}, {stored_type(t), "from"}, {stored_type(t), "out", true}};
  const std::string to = "out[(o * n1 + j) * n3 + i]", next = "from[(o * n2 + k) * n3 + i]";
  // a value that replaces another is not converted, so its bits are kept
  const auto read = [&](const std::string& v) { return s.adds ? codegen::loaded_as(t, v) : v; };
  return codegen::simt::begin_kernel(language, name, kScatterThreads, parameters, kScatterSizes, "long") +
         filled(kScatter,
                {{"INDEX", stored_type(s.index)},
                 {"REGISTER", s.adds ? std::string(codegen::register_type(t)) : stored_type(t)},
                 {"TO", to},
                 {"OLD", s.adds ? read(to) : "0"},
                 {"NEXT", s.adds ? codegen::rounded(codegen::spell(Op::Add, t, "sum", read(next), ""), t) : next},
                 {"STORED", s.adds ? codegen::stored("sum", t) : "sum"},
                 {"TYPE", stored_type(t)},
                 {"ORDERED", s.same_columns ? "1" : "n3"},
                 {"COLUMN", s.same_columns ? "0" : "i"},
                 {"THREADS", to_string(kScatterThreads)}});
}

}  // namespace lc::backends::gpu
