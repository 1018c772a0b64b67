// Parts of the attention kernels' text (text.cpp), with gaps that are filled in.
#pragma once

#include <string_view>

namespace lc::backends::gpu::pieces {

inline constexpr std::string_view kArrays = R"(  LC_SHARED(float, queries, PADDED_DEPTH * ROWS);
  LC_SHARED(float, chunk, CHUNK);
  LC_SHARED(float, weights, KEYS * WEIGHT_PITCH);
  LC_SHARED(float, folded, ROWS * (PARTS + (PARTS > 16 ? 16 : 0)));
)";
inline constexpr std::string_view kCoreArrays = R"(  LC_SHARED(u16, queries, ROWS * KEY_PITCH);
  LC_SHARED(u16, chunk, CHUNK);
)";

inline constexpr std::string_view kBegin = R"(
$ARRAYS  LC_SHARED(long, query_at, ROWS);
  LC_SHARED(long, out_at, ROWS);
  LC_SHARED(int, votes, 3);
  const int t = LC_THREAD, lane = t % LANES, mine = $MINE;
  const long group = (long)LC_GROUP, split = group % $SPLITS;
  const long block = $BLOCKS - 1 - group / $SPLITS % $BLOCKS, batch = group / $SPLITS / $BLOCKS;
  const long first = block * ROWS;
  const long begin = split * $SPLIT, end = begin + $SPLIT < keys ? begin + $SPLIT : keys;
  int phase = 0;
  if (t < 3) votes[t] = 0;
)";

// Rows beyond the last are zeros and are not written.
inline constexpr std::string_view kQueries = R"(
  LC_BARRIER;
  for (int u0 = 0; u0 < ROWS * PADDED_DEPTH; u0 += THREADS) {
    const int u = u0 + t, r = u / PADDED_DEPTH, d = u % PADDED_DEPTH;
    if (u < ROWS * PADDED_DEPTH) {
      const float x = d < DEPTH && first + r < $ROWS ? q[query_at[r] + d * q_depth] : 0.0f;
      $KEEP_QUERY;
    }
  }
  float sum[MY_ROWS][MY_COLUMNS], top[MY_ROWS], total[MY_ROWS];
  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    top[i] = -__builtin_inff();
    total[i] = 0.0f;
    LC_UNROLL
    for (int c = 0; c < MY_COLUMNS; ++c) sum[i][c] = 0.0f;
  }
  for (long j0 = begin; j0 < end; j0 += KEYS) {
    int work = 1;
)";

// Votes whether $SAYS is true in any thread. Three counters take turns: one is read while the next is cleared.
inline constexpr std::string_view kVote = R"(
    if ($SAYS) votes[phase] = 1;
    phase = phase == 2 ? 0 : phase + 1;
    if (t == 0) votes[phase] = 0;
    LC_BARRIER;
    work = votes[phase == 0 ? 2 : phase - 1];
)";

// Loads one vector after the other, because all of them in flight at once would spill sums.
inline constexpr std::string_view kOddValues = R"(
    if (!work) {
      float odd = 0.0f;
      LC_LOOP
      for (int u0 = 0; u0 < KEYS * WIDTH / $N; u0 += THREADS) {
        const int u = u0 + t, c = u % (WIDTH / $N) * $N;
        const long key = j0 + u / (WIDTH / $N);
        if (u < KEYS * WIDTH / $N && key < end) {
$READ          LC_UNROLL
          for (int l = 0; l < $N; ++l) odd += $VALUE * 0.0f;
        }
      }$VOTE    }
)";

// The scores by multiply-adds: keys in shared memory are adjacent.
inline constexpr std::string_view kProducts = R"(      LC_LOOP
      for (int d0 = 0; d0 < PADDED_DEPTH; d0 += STEP) {
        LC_BARRIER;
$LOAD_KEYS        LC_BARRIER;
        LC_UNROLL_4
        for (int d = 0; d < STEP; ++d) {
          float x[MY_ROWS], y[MY_KEYS];
          LC_UNROLL
          for (int i = 0; i < MY_ROWS; ++i) x[i] = queries[(d0 + d) * ROWS + mine + i];
          LC_UNROLL
          for (int j = 0; j < MY_KEYS; ++j) y[j] = chunk[d * PITCH + lane * MY_KEYS + j];
          LC_UNROLL
          for (int i = 0; i < MY_ROWS; ++i) {
            LC_UNROLL
            for (int j = 0; j < MY_KEYS; ++j) s[i][j] = lc_mul_add_f(x[i], y[j], s[i][j]);
          }
        }
      }
)";

// The scores by tensor cores, with rows and keys in the layout of the cores' sums: a warp has 16 rows, and a thread has
// two of them and two adjacent keys of each eight.
inline constexpr std::string_view kCoreProducts = R"(      const int d0 = 0;
      LC_BARRIER;
$LOAD_KEYS      LC_BARRIER;
      lc_core_products<PADDED_DEPTH>(s, queries + t / 32 * 16 * KEY_PITCH, chunk, KEY_PITCH);
)";

inline constexpr std::string_view kScores = R"(
    if (work) {
      float s[MY_ROWS][MY_KEYS];
      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        LC_UNROLL
        for (int j = 0; j < MY_KEYS; ++j) s[i][j] = 0.0f;
      }
$PRODUCTS      float m[MY_ROWS];
      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        const int r = mine + i * ROW_STEP;
        const int real = first + r < $ROWS;
        m[i] = -__builtin_inff();
        LC_UNROLL
        for (int j = 0; j < MY_KEYS; ++j) {
          const long key = j0 + j / KEY_SIDE * (KEY_SIDE * LANES) + lane * KEY_SIDE + j % KEY_SIDE;
          float x = s[i][j] * $SCALE;
$STEPS          s[i][j] = key < end && real ? x : -__builtin_inff();
          m[i] = lc_max_f(m[i], s[i][j]);
        }
      }
)";

inline constexpr std::string_view kSums = R"(      LC_LOOP
      for (int k0 = 0; k0 < KEYS && j0 + k0 < end; k0 += SPAN) {
        LC_BARRIER;
$LOAD_VALUES        LC_BARRIER;
        LC_UNROLL_4
        for (int k = 0; k < SPAN; ++k) {
          float x[MY_ROWS], y[MY_COLUMNS];
          LC_UNROLL
          for (int i = 0; i < MY_ROWS; ++i) x[i] = weights[(k0 + k) * WEIGHT_PITCH + mine + i];
          LC_UNROLL
          for (int c = 0; c < MY_COLUMNS; ++c)
            y[c] = chunk[k * COLUMNS + c / SIDE * (SIDE * LANES) + lane * SIDE + c % SIDE];
          LC_UNROLL
          for (int i = 0; i < MY_ROWS; ++i) {
            LC_UNROLL
            for (int c = 0; c < MY_COLUMNS; ++c) sum[i][c] = lc_mul_add_f(x[i], y[c], sum[i][c]);
          }
        }
      }
)";

inline constexpr std::string_view kCoreSums = R"(      const int k0 = 0;
      LC_BARRIER;
$LOAD_VALUES      LC_BARRIER;
      lc_core_weighted(sum, s, chunk, VALUE_PITCH);
)";

inline constexpr std::string_view kWeights = R"(
      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        const float highest = lc_max_f(top[i], m[i]), base = highest == -__builtin_inff() ? 0.0f : highest;
        const float shrink = lc_exp2_f((top[i] - base) * $EXPONENT);
        top[i] = highest;
        total[i] *= shrink;
        LC_UNROLL
        for (int j = 0; j < MY_KEYS; ++j) {
          const float e = lc_exp2_f((s[i][j] - base) * $EXPONENT);
          total[i] += e;
          $KEEP_WEIGHT;
        }
        LC_UNROLL
        for (int c = 0; c < MY_COLUMNS; ++c) sum[i][c] *= shrink;
      }
$SUMS    }
  }
)";

// A row that sees no key is NaN: its maximum is subtracted from itself.
inline constexpr std::string_view kResults = R"(
  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    const int r = mine + i * ROW_STEP;
    const float share = top[i] == -__builtin_inff() ? top[i] - top[i] : 1.0f / total[i];
    LC_UNROLL
    for (int c = 0; c < MY_COLUMNS; ++c) {
      const int column = c / SIDE * (SIDE * LANES) + lane * SIDE + c % SIDE;
      if (first + r < $ROWS && column < WIDTH) out[out_at[r] + column] = sum[i][c] * share;
    }
  }
)";
inline constexpr std::string_view kPartials = R"(
  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    const long row = first + mine + i * ROW_STEP, at = ((batch * $ROWS + row) * $SPLITS + split) * (WIDTH + 2);
    LC_UNROLL
    for (int c = 0; c < MY_COLUMNS; ++c) {
      const int column = c / SIDE * (SIDE * LANES) + lane * SIDE + c % SIDE;
      if (row < $ROWS && column < WIDTH) partial[at + column] = sum[i][c];
    }
    if (row < $ROWS && lane == 0) {
      partial[at + WIDTH] = top[i];
      partial[at + WIDTH + 1] = total[i];
    }
  }
)";

// Reads the bits of a tile's mask into shared memory, N per number and each once; then takes the bits of a thread's
// scores.
inline constexpr std::string_view kWideMask = R"(    for (int u0 = 0; u0 < ROWS * KEYS / $N; u0 += THREADS) {
      const int u = u0 + t, r = u / (KEYS / $N), c = u % (KEYS / $N) * $N;
      if (u < ROWS * KEYS / $N) {
        u32 bits = 0;
        if (j0 + c < end && first + r < $ROWS) {
          LC_LOADV(u8, $N, w, step$K + step$K_at[r] + j0 + c);
          LC_UNROLL
          for (int l = 0; l < $N; ++l) bits |= LC_AT(w, l) $KEEP ? 1u << l : 0u;
        }
        bits$K[u] = (u16)bits;
      }
    }
    LC_BARRIER;
    LC_UNROLL
    for (int i = 0; i < MY_ROWS; ++i) {
      LC_UNROLL
      for (int j = 0; j < MY_KEYS; ++j) {
        const int key = j / KEY_SIDE * (KEY_SIDE * LANES) + lane * KEY_SIDE + j % KEY_SIDE;
        kept$K |= ((u32)bits$K[(mine + i * ROW_STEP) * (KEYS / $N) + key / $N] >> key % $N & 1u) << (i * MY_KEYS + j);
      }
    }
)";
inline constexpr std::string_view kNarrowMask = R"(    LC_UNROLL
    for (int i = 0; i < MY_ROWS; ++i) {
      const int r = mine + i * ROW_STEP;
      LC_UNROLL
      for (int j = 0; j < MY_KEYS; ++j) {
        const long key = j0 + j / KEY_SIDE * (KEY_SIDE * LANES) + lane * KEY_SIDE + j % KEY_SIDE;
        if (key < end && first + r < $ROWS && step$K[step$K_at[r] + key * step$K_key] $KEEP)
          kept$K |= 1u << (i * MY_KEYS + j);
      }
    }
)";

inline constexpr std::string_view kStage = R"($UNROLL        for (int u0 = 0; u0 < $UNITS; u0 += THREADS) {
          const int u = u0 + t, $SPLIT_UNIT;
          const long key = $KEY;
          if (u < $UNITS) {
            if (key < end && $COLUMN < $EXTENT) {
$READ            } else {
              LC_UNROLL
              for (int l = 0; l < $N; ++l) $TO = 0;
            }
          }
        }
)";

}  // namespace lc::backends::gpu::pieces
