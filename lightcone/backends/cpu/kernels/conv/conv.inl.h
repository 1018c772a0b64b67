// Microkernels of conv.h, compiled for each instruction set: packing of image windows, the register tile (MR rows of
// two vectors of pixels), and Winograd's F(4x4, 3x3) transforms over WIDTH tiles at once.
#include <algorithm>
#include <cstring>
#include <utility>

#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/conv/winograd.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kNr = 2 * WIDTH;
static_assert(MR <= WIDTH || MR % WIDTH == 0, "what a vector writes behind a row of a panel belongs to the next");

// ---- packing -----------------------------------------------------------------------------------

// The last vector write extends WIDTH - MR floats past the panel.
void pack_weights(const ConvProblem& p, i64 row, i64 rows, i64 k0, i64 depth, float* to) {
  const float* from = p.weight + row * p.weight_row;
  const Tap* taps = p.taps + k0;
  i64 k = 0;
  if (p.neighbours) {
    const float* begin = from + taps[0].weight;
    const i64 next = row + rows + MR <= p.rows ? MR * p.weight_row : 0;  // distance to the next panel
    for (; k + WIDTH <= depth; k += WIDTH) {
      for (int part = 0; part < MR; part += WIDTH) {
        vf v[WIDTH] = {};
        LC_UNROLL_BY(16)
        for (int r = 0; r < std::min(MR, WIDTH); ++r)
          if (part + r < rows) {
            const float* at = begin + (part + r) * p.weight_row + k;
            v[r] = load(at);
            __builtin_prefetch(at + next);
          }
        transpose(v);
        LC_UNROLL_BY(16)
        for (int i = 0; i < WIDTH; ++i) store(to + (k + i) * MR + part, v[i]);
      }
    }
  }
  for (; k < depth; ++k)
    for (i64 r = 0; r < rows; ++r) to[k * MR + r] = from[r * p.weight_row + taps[k].weight];
}

// Pixels of a strip that are in one row of the output.
struct Segment {
  i64 column, length;
  i64 image;  // offset of the first pixel
  i64 at[kSpatial];
};

int segments(const ConvProblem& p, i64 first, i64 width, Segment* to) {
  int n = 0;
  i64 x = first % p.extent[2], y = first / p.extent[2] % p.extent[1], z = first / p.extent[2] / p.extent[1];
  for (i64 column = 0; column < width;) {
    const i64 length = std::min(width - column, p.extent[2] - x);
    to[n++] = {column,
               length,
               x * p.image_step[2] + y * p.image_step[1] + z * p.image_step[0],
               {z * p.step[0], y * p.step[1], x * p.step[2]}};
    column += length, x = 0;
    if (++y == p.extent[1]) y = 0, ++z;
  }
  return n;
}

// Copies n elements, `step` apart, with zeros outside [begin, end). Writes whole vectors.
void copy_row(const float* from, i64 step, i64 begin, i64 end, i64 n, float* to) {
  for (i64 i = 0; i < n; i += WIDTH) {
    const i64 first = std::clamp<i64>(begin - i, 0, WIDTH);
    store(to + i, load_some(from + i * step, step, first, std::clamp<i64>(end - i, first, WIDTH)));
  }
}

// Copies the pixels of one segment for one tap, with zeros outside the image. The vectors may overwrite what follows,
// which is written later.
inline void segment(const ConvProblem& p, const Segment& s, const Tap& t, float* to) {
  i64 begin = 0, end = s.length;
  for (int j = 0; j < 2; ++j) {
    const i64 c = s.at[j] + t.shift[j];
    if (c < p.lo[j] || c >= p.hi[j]) end = 0;
  }
  const i64 c = s.at[2] + t.shift[2], step = p.step[2];
  if (c < p.lo[2] || c + step * (s.length - 1) >= p.hi[2]) {
    if (step == 0) {
      end = 0;
    } else {
      const auto steps = [step](i64 d) { return d <= 0 ? 0 : step == 1 ? d : (d + step - 1) / step; };
      begin = std::min(steps(p.lo[2] - c), end);
      end = std::max(begin, std::min(end, steps(p.hi[2] - c)));
    }
  }
  copy_row(p.image + s.image + t.image, p.image_step[2], begin, end, s.length, to);
}

// Packs contiguous pixels without padding by copying rows of the image. The rows are software-prefetched, because they
// are in different pages, across which hardware does not prefetch.
constexpr i64 kAhead = 4;
void pack_rows(const ConvProblem& p, i64 first, i64 columns, i64 k0, i64 depth, float* to) {
  const i64 step = p.image_step[2];
  for (i64 k = 0; k < depth; ++k) {
    const float* from = p.image + p.taps[k0 + k].image + first * step;
    const i64 ahead = p.taps[k0 + std::min(k + kAhead, depth - 1)].image - p.taps[k0 + k].image;
    float* row = to + k * kNr;
    for (i64 j = 0; j < columns; j += kNr, row += depth * kNr)
      for (i64 i = 0; i < kNr; i += WIDTH) {
        __builtin_prefetch(from + (j + i) * step + ahead);
        store(row + i, load_some(from + (j + i) * step, step, 0, std::clamp<i64>(columns - j - i, 0, WIDTH)));
      }
  }
}

void pack_image(const ConvProblem& p, i64 first, i64 columns, i64 k0, i64 depth, float* to) {
  bool rows = p.extent[0] == 1 && p.extent[1] == 1;
  for (int j = 0; j < kSpatial; ++j) rows = rows && p.step[j] == 0 && p.lo[j] <= -kConvFar && p.hi[j] >= kConvFar;
  if (rows) return pack_rows(p, first, columns, k0, depth, to);
  Segment part[kNr];
  for (i64 j = 0; j < columns; j += kNr) {
    const i64 width = std::min<i64>(kNr, columns - j);
    const int n = segments(p, first + j, width, part);
    for (i64 k = 0; k < depth; ++k, to += kNr) {
      for (int s = 0; s < n; ++s) segment(p, part[s], p.taps[k0 + k], to + part[s].column);
      for (i64 i = width; i < kNr; ++i) to[i] = 0.0f;
    }
  }
}

// ---- the register tile -------------------------------------------------------------------------

// Multiplies into registers. Row k of the second factor is at(k); `next` points to the next weights, which are
// prefetched.
template <int R, int V, class At>
inline void multiply(const float* a, const float* next, i64 depth, vf (&acc)[R][V], const At& at) {
  for (i64 k = 0; k < depth; ++k, a += MR, next += MR) {
    const float* b = at(k);
    vf x[V];
    for (int v = 0; v < V; ++v) x[v] = load(b + v * WIDTH);
    __builtin_prefetch(next, 0, 2);
    LC_UNROLL_BY(16)
    for (int r = 0; r < R; ++r) add_products(acc[r], a + r, x, r);
  }
}

template <int R, int V>
void tile_of(const float* a, const float* b, i64 depth, float* c, i64 c_row, i64 columns, bool add) {
  vf acc[R][V] = {};
  multiply(a, a + depth * MR, depth, acc, [b](i64 k) { return b + k * kNr; });
  if (columns == V * WIDTH) {
    LC_UNROLL_BY(16)
    for (int r = 0; r < R; ++r) {
      LC_UNROLL_BY(4)
      for (int v = 0; v < V; ++v) {
        float* p = c + r * c_row + v * WIDTH;
        store(p, add ? load(p) + acc[r][v] : acc[r][v]);
      }
    }
    return;
  }
  LC_UNROLL_BY(16)
  for (int r = 0; r < R; ++r) {
    LC_UNROLL_BY(4)
    for (int v = 0; v < V; ++v) {
      const i64 n = std::min<i64>(WIDTH, columns - v * WIDTH);
      float* p = c + r * c_row + v * WIDTH;
      store_part(p, add ? load_part(p, n) + acc[r][v] : acc[r][v], n);
    }
  }
}

// As tile_of, over an image whose row k is at b + at[k]. Columns are whole vectors.
template <int R, int V>
void slide_of(const float* a, const float* next, const float* b, const i64* at, i64 depth, float* c, i64 c_row,
              bool add) {
  vf acc[R][V] = {};
  multiply(a, next, depth, acc, [b, at](i64 k) { return b + at[k]; });
  LC_UNROLL_BY(16)
  for (int r = 0; r < R; ++r) {
    LC_UNROLL_BY(4)
    for (int v = 0; v < V; ++v) {
      float* p = c + r * c_row + v * WIDTH;
      store(p, add ? load(p) + acc[r][v] : acc[r][v]);
    }
  }
}

using Tile = void (*)(const float*, const float*, i64, float*, i64, i64, bool);
using Slide = void (*)(const float*, const float*, const float*, const i64*, i64, float*, i64, bool);
template <int... R>
constexpr auto tiles(std::integer_sequence<int, R...>) {
  struct Both {
    Tile narrow, wide;
    Slide slide_narrow, slide_wide;
  };
  struct All {
    Both rows[sizeof...(R)];
  };
  return All{{{tile_of<R + 1, 1>, tile_of<R + 1, 2>, slide_of<R + 1, 1>, slide_of<R + 1, 2>}...}};
}
constexpr auto kTiles = tiles(std::make_integer_sequence<int, MR>());

void tile(const float* a, const float* b, i64 depth, float* c, i64 c_row, i64 rows, i64 columns, bool add) {
  const auto& t = kTiles.rows[rows - 1];
  (columns <= WIDTH ? t.narrow : t.wide)(a, b, depth, c, c_row, columns, add);
}

void slide(const float* a, const float* next, const float* b, const i64* at, i64 depth, float* c, i64 c_row, i64 rows,
           i64 columns, bool add) {
  const auto& t = kTiles.rows[rows - 1];
  (columns <= WIDTH ? t.slide_narrow : t.slide_wide)(a, next, b, at, depth, c, c_row, add);
}

// ---- Winograd F(4x4, 3x3) ----------------------------------------------------------------------

// Loads filters of `count` <= WIDTH channels as vectors of up to WIDTH rows, nine per channel.
void filters_of(const ConvProblem& p, i64 row, i64 rows, i64 channel, i64 count, float (&g)[9 * WIDTH][WIDTH]) {
  const float* from = p.weight + row * p.weight_row + p.taps[9 * channel].weight;
  if (p.neighbours && count == WIDTH) {
    for (int q = 0; q < 9; ++q) {
      vf v[WIDTH] = {};
      LC_UNROLL_BY(16)
      for (int r = 0; r < std::min(MR, WIDTH); ++r)
        if (r < rows) v[r] = load(from + r * p.weight_row + q * WIDTH);
      transpose(v);
      LC_UNROLL_BY(16)
      for (int i = 0; i < WIDTH; ++i) store(g[q * WIDTH + i], v[i]);
    }
    return;
  }
  for (i64 r = 0; r < WIDTH; ++r)
    for (i64 i = 0; i < 9 * count; ++i)
      g[i][r] = r < rows ? p.weight[(row + r) * p.weight_row + p.taps[9 * channel + i].weight] : 0.0f;
}

// Transforms rows [part, part + WIDTH) of a panel.
vi part_in(const ConvProblem& p, i64 row, i64 rows, int part, i64 first, i64 depth, float* to, i64 stride) {
  alignas(64) float g[9 * WIDTH][WIDTH];
  vi bad = {};
  for (i64 c = 0; c < depth; c += WIDTH) {
    const i64 count = std::min<i64>(WIDTH, depth - c);
    if (!p.packed) filters_of(p, row + part, rows - part, first + c, count, g);
    for (i64 k = 0; k < count; ++k) {
      const float* f = p.packed ? p.packed + row * p.depth + 9 * (first + c + k) * MR + part : g[9 * k];
      const i64 next = p.packed ? MR : WIDTH;
      vf half[3][kTile];
      for (int x = 0; x < 3; ++x) {
        const vf line[3] = {load(f + x * next), load(f + (3 + x) * next), load(f + (6 + x) * next)};
        for (const vf& v : line) bad |= large(v);
        filter_line(line, half[x]);
      }
      for (int y = 0; y < kTile; ++y) {
        vf u[kTile];
        filter_line({half[0][y], half[1][y], half[2][y]}, u);
        for (int x = 0; x < kTile; ++x) store(to + (c + k) * MR + part + (y * kTile + x) * stride, u[x]);
      }
    }
  }
  return bad;
}
bool weights_in(const ConvProblem& p, i64 row, i64 rows, i64 first, i64 depth, float* to, i64 stride) {
  vi bad = {};
  for (int part = 0; part < MR; part += WIDTH) bad |= part_in(p, row, rows, part, first, depth, to, stride);
  return none(bad);
}

// Gathers the 6x6 pixels of WIDTH tiles into lanes, with zeros for missing pixels.
inline void gather(const WinogradTile* at, i64 offset, i64 down, i64 across, float (&to)[kTile * kTile][WIDTH]) {
#if WIDTH == 16
  if (across == 1) {
    // A mapped address is needed, because faults are slow even if masked.
    alignas(64) static const float nothing[2 * WIDTH] = {};
    for (i64 y = 0; y < kTile; ++y) {
      vf v[8];
      for (int l = 0; l < 8; ++l) {
        const WinogradTile &a = at[l], &b = at[l + 8];
        const bool in_a = y >= a.top && y < a.bottom && a.left < a.right;
        const bool in_b = y >= b.top && y < b.bottom && b.left < b.right;
        const auto mask_a = static_cast<__mmask16>(in_a ? (1u << a.right) - (1u << a.left) : 0);
        const auto mask_b = static_cast<__mmask16>(in_b ? ((1u << b.right) - (1u << b.left)) << 8 : 0);
        const auto half = _mm512_maskz_loadu_ps(mask_a, in_a ? a.image + offset + y * down : nothing);
        v[l] = reinterpret_cast<vf>(
            _mm512_mask_loadu_ps(half, mask_b, (in_b ? b.image + offset + y * down : nothing + 8) - 8));
      }
      transpose<8>(v);
      for (int x = 0; x < kTile; ++x) store(to[y * kTile + x], v[x]);
    }
    return;
  }
#endif
  for (int l = 0; l < WIDTH; ++l)
    for (i64 y = 0; y < kTile; ++y)
      for (i64 x = 0; x < kTile; ++x) {
        const WinogradTile& t = at[l];
        const bool inside = y >= t.top && y < t.bottom && x >= t.left && x < t.right;
        to[y * kTile + x][l] = inside ? t.image[offset + y * down + x * across] : 0.0f;
      }
}

bool image_in(const WinogradTile* at, i64 offset, i64 down, i64 across, float* to, i64 stride) {
  alignas(64) float tiles[kTile * kTile][WIDTH];
  gather(at, offset, down, across, tiles);
  vf half[kTile][kTile];  // [column][row]
  vi bad = {};
  for (int x = 0; x < kTile; ++x) {
    vf d[kTile];
    for (int y = 0; y < kTile; ++y) {
      d[y] = load(tiles[y * kTile + x]);
      bad |= large(d[y]);
    }
    image_line(d, half[x]);
  }
  for (int y = 0; y < kTile; ++y) {
    vf v[kTile];
    image_line({half[0][y], half[1][y], half[2][y], half[3][y], half[4][y], half[5][y]}, v);
    for (int x = 0; x < kTile; ++x) store(to + (y * kTile + x) * stride, v[x]);
  }
  return none(bad);
}

inline v4 quarter(vf v, int i) {
  v4 q[WIDTH / 4];
  std::memcpy(q, &v, sizeof v);
  return q[i];
}
// Writes a row of pixels of WIDTH tiles, four per tile.
inline void scatter(const WinogradTile* at, i64 offset, i64 y, vf (&r)[kOut]) {
  transpose<kOut>(r);
  for (int l = 0; l < WIDTH; ++l) {
    if (y >= at[l].down) continue;
    float* to = at[l].out + offset;
    const v4 pixels = quarter(r[l % kOut], l / kOut);
    if (at[l].across == kOut) *reinterpret_cast<v4_stored*>(to) = pixels;
    else
      for (i64 x = 0; x < at[l].across; ++x) to[x] = pixels[x];
  }
}

void out(const float* tiles, i64 stride, const WinogradTile* at, i64 offset, i64 width) {
  vf half[kTile][kOut];
  for (int x = 0; x < kTile; ++x) {
    vf m[kTile];
    for (int y = 0; y < kTile; ++y) m[y] = load(tiles + (y * kTile + x) * stride);
    out_line(m, half[x]);
  }
  for (int y = 0; y < kOut; ++y) {
    vf r[kOut];
    out_line({half[0][y], half[1][y], half[2][y], half[3][y], half[4][y], half[5][y]}, r);
    scatter(at, offset + y * width, y, r);
  }
}

}  // namespace

extern "C" {
void LC_ENTRY(conv_pack_weights)(const ConvProblem* p, i64 row, i64 rows, i64 k, i64 depth, float* to) {
  pack_weights(*p, row, rows, k, depth, to);
}
void LC_ENTRY(conv_pack_image)(const ConvProblem* p, i64 first, i64 columns, i64 k, i64 depth, float* to) {
  pack_image(*p, first, columns, k, depth, to);
}
void LC_ENTRY(conv_tile)(const float* a, const float* b, i64 depth, float* c, i64 c_row, i64 rows, i64 columns,
                         bool add) {
  tile(a, b, depth, c, c_row, rows, columns, add);
}
void LC_ENTRY(conv_slide)(const float* a, const float* next, const float* b, const i64* at, i64 depth, float* c,
                          i64 c_row, i64 rows, i64 columns, bool add) {
  slide(a, next, b, at, depth, c, c_row, rows, columns, add);
}
void LC_ENTRY(conv_copy_row)(const float* from, i64 step, i64 begin, i64 end, i64 n, float* to) {
  copy_row(from, step, begin, end, n, to);
}
bool LC_ENTRY(conv_weights_in)(const ConvProblem* p, i64 row, i64 rows, i64 first, i64 depth, float* to, i64 stride) {
  return weights_in(*p, row, rows, first, depth, to, stride);
}
bool LC_ENTRY(conv_image_in)(const WinogradTile* at, i64 offset, i64 down, i64 across, float* to, i64 stride) {
  return image_in(at, offset, down, across, to, stride);
}
void LC_ENTRY(conv_out)(const float* tiles, i64 stride, const WinogradTile* at, i64 offset, i64 width) {
  out(tiles, stride, at, offset, width);
}
}

const ConvTable TABLE = {MR,
                         kNr,
                         LC_ENTRY(conv_pack_weights),
                         LC_ENTRY(conv_pack_image),
                         LC_ENTRY(conv_tile),
                         LC_ENTRY(conv_slide),
                         LC_ENTRY(conv_copy_row),
                         WIDTH,
                         LC_ENTRY(conv_weights_in),
                         LC_ENTRY(conv_image_in),
                         LC_ENTRY(conv_out)};

}  // namespace lc::backends::cpu
