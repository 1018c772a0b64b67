// Parts of the text of the attention gradients' kernels (gradients_text.cpp), with gaps that are filled in. $OTHER is
// the index, in a tile, of the thread's j-th row of those that the kernel walks over.
#pragma once

#include <string_view>

namespace lc::backends::gpu::gradients_pieces {

// Stages $COUNT rows of a matrix [$END][$N] from $BEGIN on, and of each $COLUMNS elements from $D0 on; elements beyond
// it are zeros.
inline constexpr std::string_view kGradientsStage =
    R"($UNROLL        for (int u0 = 0; u0 < $COUNT * $COLUMNS / $V; u0 += THREADS) {
          const int u = u0 + t, r = u / ($COLUMNS / $V), c = u % ($COLUMNS / $V) * $V;
          if (u < $COUNT * $COLUMNS / $V) {
            if ($BEGIN + r < $END && $D0 + c < $N) {
$READ            } else {
              LC_UNROLL
              for (int l = 0; l < $V; ++l) chunk[$AT + r * $PITCH + c + l] = 0;
            }
          }
        }
)";

// Multiplies the block's own rows by the staged ones.
inline constexpr std::string_view kFmaProducts = R"(      float $SUM[MY_ROWS][MY_OTHERS];
      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        LC_UNROLL
        for (int j = 0; j < MY_OTHERS; ++j) $SUM[i][j] = 0.0f;
      }
      LC_LOOP
      for (int d0 = 0; d0 < $N; d0 += $STEP) {
        LC_BARRIER;
$STAGE_OWN$STAGE_OTHERS        LC_BARRIER;
        LC_LOOP
        for (int d = 0; d < $STEP; d += 4) {
          float x[MY_ROWS][4], y[MY_OTHERS][4];
          LC_UNROLL
          for (int i = 0; i < MY_ROWS; ++i) {
            LC_UNROLL
            for (int l = 0; l < 4; ++l) x[i][l] = chunk[(mine + i) * $PITCH + d + l];
          }
          LC_UNROLL
          for (int j = 0; j < MY_OTHERS; ++j) {
            LC_UNROLL
            for (int l = 0; l < 4; ++l) y[j][l] = chunk[(ROWS + lane + j * LANES) * $PITCH + d + l];
          }
          LC_UNROLL
          for (int l = 0; l < 4; ++l) {
            LC_UNROLL
            for (int i = 0; i < MY_ROWS; ++i) {
              LC_UNROLL
              for (int j = 0; j < MY_OTHERS; ++j) $SUM[i][j] = lc_mul_add_f(x[i][l], y[j][l], $SUM[i][j]);
            }
          }
        }
      }
)";

// The same by tensor cores: a warp has 16 own rows, and a thread has two of them and two adjacent rows of each eight
// others.
inline constexpr std::string_view kCoreProducts = R"(      float $SUM[MY_ROWS][MY_OTHERS];
      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        LC_UNROLL
        for (int j = 0; j < MY_OTHERS; ++j) $SUM[i][j] = 0.0f;
      }
      LC_BARRIER;
$STAGE_OWN$STAGE_OTHERS      LC_BARRIER;
      lc_core_products<$STEP>($SUM, chunk + t / 32 * 16 * $PITCH, chunk + ROWS * $PITCH, $PITCH);
)";

// Adds up the weights of own rows times the staged rows.
inline constexpr std::string_view kFmaAccumulate = R"(      LC_LOOP
      for (int k0 = 0; k0 < OTHERS && o0 + k0 < $END; k0 += $SPAN) {
        LC_BARRIER;
$STAGE        LC_BARRIER;
        LC_LOOP
        for (int k = 0; k < $SPAN; k += 4) {
          float x[MY_ROWS][4];
          LC_UNROLL
          for (int i = 0; i < MY_ROWS; ++i) {
            LC_UNROLL
            for (int l = 0; l < 4; ++l) x[i][l] = weights[(mine + i) * WEIGHTS_PITCH + k0 + k + l];
          }
          LC_UNROLL
          for (int l = 0; l < 4; ++l) {
            float y[$MY];
            LC_UNROLL
            for (int c = 0; c < $MY; ++c)
              y[c] = chunk[(k + l) * ($MY * LANES) + c / $SIDE * ($SIDE * LANES) + lane * $SIDE + c % $SIDE];
            LC_UNROLL
            for (int i = 0; i < MY_ROWS; ++i) {
              LC_UNROLL
              for (int c = 0; c < $MY; ++c) $SUM[i][c] = lc_mul_add_f(x[i][l], y[c], $SUM[i][c]);
            }
          }
        }
      }
)";

inline constexpr std::string_view kCoreAccumulate = R"(      LC_BARRIER;
$STAGE      LC_BARRIER;
      lc_core_weighted($SUM, $FROM, chunk, $PITCH);
)";

inline constexpr std::string_view kZeros = R"(  float $SUM[MY_ROWS][$MY];
  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    LC_UNROLL
    for (int c = 0; c < $MY; ++c) $SUM[i][c] = 0.0f;
  }
)";

inline constexpr std::string_view kGradientResults = R"(  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    LC_UNROLL
    for (int c = 0; c < $MY; c += $V) {
      const long row = first + mine + i * ROW_STEP;
      const int column = c / $SIDE * ($SIDE * LANES) + lane * $SIDE + c % $SIDE;
      if (row < $END && column < $N) {
$WRITE      }
    }
  }
)";

// Defines the query and the key of score (i, j), whether it is seen, and its value.
inline constexpr std::string_view kScore =
    R"(          const long own = first + mine + i * ROW_STEP, other = o0 + $OTHER;
          const int real = own < $OWN_END && other < $OTHER_END, seen = real$AND;
          const float score = seen ? s[i][j] * $SCALE : -__builtin_inff();
)";

// Votes whether $SAYS is true in any thread of the block.
inline constexpr std::string_view kVoteOfBlock = R"(  if (t == 0) odd[0] = 0;
  LC_BARRIER;
  if ($SAYS) odd[0] = 1;
  LC_BARRIER;
)";

inline constexpr std::string_view kFiniteTile = R"(
  LC_SHARED(int, odd, 1);
  const int t = LC_THREAD;
  const long tiles = ($KEYS + OTHERS - 1) / OTHERS, head = (long)LC_GROUP / tiles;
  const long first = (long)LC_GROUP % tiles * OTHERS;
  const long rows = $KEYS - first < OTHERS ? $KEYS - first : OTHERS;
  float sum = 0.0f;
$SUM_K$SUM_V$VOTE  if (t == 0) scratch[3 * $ROWS + (long)LC_GROUP] = (float)odd[0];
)";

inline constexpr std::string_view kShared = R"(
  LC_SHARED($TYPE, chunk, CHUNK);
  LC_SHARED(float, weights, WEIGHTS);
  LC_SHARED(float, statistics, ROWS * 3);
  LC_SHARED(int, odd, 1);
  const int t = LC_THREAD, lane = t % LANES, mine = $MINE;
)";

// The blocks that see most keys come first.
inline constexpr std::string_view kQueriesBegin =
    R"(  const long blocks = ($QUERIES + ROWS - 1) / ROWS, head = (long)LC_GROUP / blocks;
  const long key_head = head / $GROUP, first = (blocks - 1 - (long)LC_GROUP % blocks) * ROWS;
  LC_GLOBAL const float* const q_head = q + head * $QUERIES * DEPTH;
  LC_GLOBAL const float* const g_head = g + head * $QUERIES * WIDTH;
  LC_GLOBAL const float* const k_head = k + key_head * $KEYS * DEPTH;
  LC_GLOBAL const float* const v_head = v + key_head * $KEYS * WIDTH;
$MASK  long end = $KEYS;
)";
inline constexpr std::string_view kQueriesCausal = R"(  const long tiles = ($KEYS + OTHERS - 1) / OTHERS;
  float hidden = 0.0f;
  for (long u = (first + ROWS + OTHERS - 1) / OTHERS + t; u < tiles; u += THREADS)
    hidden += scratch[3 * $ROWS + key_head * tiles + u];
$VOTE  if (!odd[0] && first + ROWS < end) end = first + ROWS;
)";

// Each thread has a maximum, a sum and a mean over its own keys.
inline constexpr std::string_view kStatistics = R"(  float top[MY_ROWS], total[MY_ROWS], mean[MY_ROWS];
  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    top[i] = -__builtin_inff();
    total[i] = mean[i] = 0.0f;
  }
  for (long o0 = 0; o0 < end; o0 += OTHERS) {
$SCORES$SLOPES      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        float highest = top[i];
        LC_UNROLL
        for (int j = 0; j < MY_OTHERS; ++j) {
$SCORE          s[i][j] = score;
          highest = lc_max_f(highest, score);
        }
        const float base = highest == -__builtin_inff() ? 0.0f : highest;
        const float shrink = lc_exp2_f((top[i] - base) * $EXPONENT);
        top[i] = highest;
        total[i] *= shrink;
        mean[i] *= shrink;
        LC_UNROLL
        for (int j = 0; j < MY_OTHERS; ++j) {
          const float e = lc_exp2_f((s[i][j] - base) * $EXPONENT);
          total[i] += e;
          mean[i] = lc_mul_add_f(e, slope[i][j], mean[i]);
        }
      }
  }
)";

// Combines the lanes' statistics in their order. A query that sees no key has NaN for its share: its maximum is
// subtracted from itself.
inline constexpr std::string_view kGradientsJoin = R"(  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    const int at = ((mine + i * ROW_STEP) * LANES + lane) * 3;
    weights[at] = top[i];
    weights[at + 1] = total[i];
    weights[at + 2] = mean[i];
  }
  LC_BARRIER;
  if (t < ROWS) {
    float highest = -__builtin_inff(), whole = 0.0f, slopes = 0.0f;
    for (int p = 0; p < LANES; ++p) highest = lc_max_f(highest, weights[(t * LANES + p) * 3]);
    const float base = highest == -__builtin_inff() ? 0.0f : highest;
    for (int p = 0; p < LANES; ++p) {
      const int at = (t * LANES + p) * 3;
      const float shrink = lc_exp2_f((weights[at] - base) * $EXPONENT);
      whole += weights[at + 1] * shrink;
      slopes += weights[at + 2] * shrink;
    }
    const float share = highest == -__builtin_inff() ? highest - highest : 1.0f / whole;
    statistics[t * 3] = base;
    statistics[t * 3 + 1] = share;
    statistics[t * 3 + 2] = slopes * share;
    const long row = first + t;
    if (row < $QUERIES) {
      scratch[head * $QUERIES + row] = base;
      scratch[$ROWS + head * $QUERIES + row] = share;
      scratch[2 * $ROWS + head * $QUERIES + row] = slopes * share;
    }
  }
  LC_BARRIER;
)";

inline constexpr std::string_view kSlopesOfQueries = R"(  for (long o0 = 0; o0 < end; o0 += OTHERS) {
$SCORES$SLOPES      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        const float base = statistics[(mine + i * ROW_STEP) * 3], share = statistics[(mine + i * ROW_STEP) * 3 + 1];
        const float average = statistics[(mine + i * ROW_STEP) * 3 + 2];
        LC_UNROLL
        for (int j = 0; j < MY_OTHERS; ++j) {
$SCORE          const float p = lc_exp2_f((score - base) * $EXPONENT) * share;
          $SLOPE = real ? p * (slope[i][j] - average) * $SCALE : 0.0f;
        }
      }
$ADD  }
)";

inline constexpr std::string_view kKeysBegin =
    R"(  const long blocks = ($KEYS + ROWS - 1) / ROWS, key_head = (long)LC_GROUP / blocks;
  const long first = (long)LC_GROUP % blocks * ROWS;
  LC_GLOBAL const float* const k_head = k + key_head * $KEYS * DEPTH;
  LC_GLOBAL const float* const v_head = v + key_head * $KEYS * WIDTH;
  long begin = 0;
)";
inline constexpr std::string_view kKeysCausal = R"(  begin = first / OTHERS * OTHERS;
  float hidden = 0.0f;
  for (long head = key_head * $GROUP; head < (key_head + 1) * $GROUP; ++head)
    for (long u = t; u < begin && u < $QUERIES; u += THREADS)
      hidden += scratch[2 * $ROWS + head * $QUERIES + u] * 0.0f;
$VOTE  if (odd[0]) begin = 0;
)";

// A single loop over the tiles of all heads that share the keys.
inline constexpr std::string_view kSlopesOfKeys =
    R"(  const long tiles = begin < $QUERIES ? ($QUERIES - begin + OTHERS - 1) / OTHERS : 0;
  for (long tile = 0; tile < tiles * $GROUP; ++tile) {
    const long head = key_head * $GROUP + tile / tiles, o0 = begin + tile % tiles * OTHERS;
    LC_GLOBAL const float* const q_head = q + head * $QUERIES * DEPTH;
    LC_GLOBAL const float* const g_head = g + head * $QUERIES * WIDTH;
$MASK$SCORES$SLOPES      LC_UNROLL
      for (int j = 0; j < MY_OTHERS; ++j) {
        const long query = o0 + $OTHER, at = head * $QUERIES + (query < $QUERIES ? query : 0);
        const float base = scratch[at], share = scratch[$ROWS + at], average = scratch[2 * $ROWS + at];
        LC_UNROLL
        for (int i = 0; i < MY_ROWS; ++i) {
$SCORE          const float p = lc_exp2_f((score - base) * $EXPONENT) * share;
          s[i][j] = real ? p : 0.0f;
          slope[i][j] = real ? p * (slope[i][j] - average) * $SCALE : 0.0f;
        }
      }
$KEEP_SHARES$ADD_VALUES      LC_BARRIER;
$KEEP_SLOPES$ADD_KEYS  }
)";
inline constexpr std::string_view kKeep = R"(      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        LC_UNROLL
        for (int j = 0; j < MY_OTHERS; ++j) weights[(mine + i) * WEIGHTS_PITCH + lane + j * LANES] = $FROM[i][j];
      }
)";

}  // namespace lc::backends::gpu::gradients_pieces
