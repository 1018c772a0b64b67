#include "lightcone/backends/gpu/attention/gradients_text.h"

#include <algorithm>
#include <initializer_list>
#include <numbers>
#include <utility>

#include "lightcone/codegen/c/text.h"
#include "lightcone/codegen/simt/filled.h"

namespace lc::gpu {
namespace {

using simt::filled;
using std::to_string;

constexpr int kLanes = GradientsTile::kLanes;
constexpr int kSums = 32;

// ---- pieces -------------------------------------------------------------------------------------

// COUNT rows of a matrix [END][N] from BEGIN on, and of each COLUMNS numbers from D0 on; zeros where it has none.
constexpr std::string_view kGradientsStage = R"(        for (int u0 = 0; u0 < $COUNT * $COLUMNS / $V; u0 += THREADS) {
          const int u = u0 + t, r = u / ($COLUMNS / $V), c = u % ($COLUMNS / $V) * $V;
          if (u < $COUNT * $COLUMNS / $V) {
            if ($BEGIN + r < $END && $D0 + c < $N) {
$READ            } else {
              LC_UNROLL
              for (int l = 0; l < $V; ++l) chunk[$AT + r * $PITCH + c + l] = 0.0f;
            }
          }
        }
)";

// Products of own rows and of those at hand.
constexpr std::string_view kProducts = R"(      float $SUM[MY_ROWS][MY_OTHERS];
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

// The weights of own rows times the rows at hand are added up.
constexpr std::string_view kAccumulate = R"(      LC_LOOP
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

constexpr std::string_view kZeros = R"(  float $SUM[MY_ROWS][$MY];
  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    LC_UNROLL
    for (int c = 0; c < $MY; ++c) $SUM[i][c] = 0.0f;
  }
)";

constexpr std::string_view kGradientResults = R"(  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    LC_UNROLL
    for (int c = 0; c < $MY; c += $V) {
      const long row = first + mine + i;
      const int column = c / $SIDE * ($SIDE * LANES) + lane * $SIDE + c % $SIDE;
      if (row < $END && column < $N) {
$WRITE      }
    }
  }
)";

// Of score (i, j): its query, its key, and is it seen?
constexpr std::string_view kScore = R"(          const long own = first + mine + i, other = o0 + lane + j * LANES;
          const int real = own < $OWN_END && other < $OTHER_END, seen = real$AND;
          const float score = seen ? s[i][j] * $SCALE : -__builtin_inff();
)";

// Does any thread say so?
constexpr std::string_view kVoteOfBlock = R"(  if (t == 0) odd[0] = 0;
  LC_BARRIER;
  if ($SAYS) odd[0] = 1;
  LC_BARRIER;
)";

// ---- the kernels --------------------------------------------------------------------------------

constexpr std::string_view kFiniteTile = R"(
  LC_SHARED(int, odd, 1);
  const int t = LC_THREAD;
  const long tiles = ($KEYS + OTHERS - 1) / OTHERS, head = (long)LC_GROUP / tiles;
  const long first = (long)LC_GROUP % tiles * OTHERS;
  const long rows = $KEYS - first < OTHERS ? $KEYS - first : OTHERS;
  float sum = 0.0f;
$SUM_K$SUM_V$VOTE  if (t == 0) scratch[3 * $ROWS + (long)LC_GROUP] = (float)odd[0];
)";

constexpr std::string_view kShared = R"(
  LC_SHARED(float, chunk, CHUNK);
  LC_SHARED(float, weights, WEIGHTS);
  LC_SHARED(float, statistics, ROWS * 3);
  LC_SHARED(int, odd, 1);
  const int t = LC_THREAD, lane = t % LANES, mine = t / LANES * MY_ROWS;
)";

// The blocks that see most keys come first.
constexpr std::string_view kQueriesBegin =
    R"(  const long blocks = ($QUERIES + ROWS - 1) / ROWS, head = (long)LC_GROUP / blocks;
  const long key_head = head / $GROUP, first = (blocks - 1 - (long)LC_GROUP % blocks) * ROWS;
  LC_GLOBAL const float* const q_head = q + head * $QUERIES * DEPTH;
  LC_GLOBAL const float* const g_head = g + head * $QUERIES * WIDTH;
  LC_GLOBAL const float* const k_head = k + key_head * $KEYS * DEPTH;
  LC_GLOBAL const float* const v_head = v + key_head * $KEYS * WIDTH;
$MASK  long end = $KEYS;
)";
constexpr std::string_view kQueriesCausal = R"(  const long tiles = ($KEYS + OTHERS - 1) / OTHERS;
  float hidden = 0.0f;
  for (long u = (first + ROWS + OTHERS - 1) / OTHERS + t; u < tiles; u += THREADS)
    hidden += scratch[3 * $ROWS + key_head * tiles + u];
$VOTE  if (!odd[0] && first + ROWS < end) end = first + ROWS;
)";

// Each thread has a maximum, a sum and a mean of its own, over the keys that are its own.
constexpr std::string_view kStatistics = R"(  float top[MY_ROWS], total[MY_ROWS], mean[MY_ROWS];
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

// The lanes' together, in their order. A query that sees nothing has NaN for its share: its maximum is taken from
// itself.
constexpr std::string_view kGradientsJoin = R"(  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    const int at = ((mine + i) * LANES + lane) * 3;
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

constexpr std::string_view kSlopesOfQueries = R"(  for (long o0 = 0; o0 < end; o0 += OTHERS) {
$SCORES$SLOPES      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        const float base = statistics[(mine + i) * 3], share = statistics[(mine + i) * 3 + 1];
        const float average = statistics[(mine + i) * 3 + 2];
        LC_UNROLL
        for (int j = 0; j < MY_OTHERS; ++j) {
$SCORE          const float p = lc_exp2_f((score - base) * $EXPONENT) * share;
          weights[(mine + i) * WEIGHTS_PITCH + lane + j * LANES] = real ? p * (slope[i][j] - average) * $SCALE : 0.0f;
        }
      }
$ADD  }
)";

constexpr std::string_view kKeysBegin =
    R"(  const long blocks = ($KEYS + ROWS - 1) / ROWS, key_head = (long)LC_GROUP / blocks;
  const long first = (long)LC_GROUP % blocks * ROWS;
  LC_GLOBAL const float* const k_head = k + key_head * $KEYS * DEPTH;
  LC_GLOBAL const float* const v_head = v + key_head * $KEYS * WIDTH;
  long begin = 0;
)";
constexpr std::string_view kKeysCausal = R"(  begin = first / OTHERS * OTHERS;
  float hidden = 0.0f;
  for (long head = key_head * $GROUP; head < (key_head + 1) * $GROUP; ++head)
    for (long u = t; u < begin && u < $QUERIES; u += THREADS)
      hidden += scratch[2 * $ROWS + head * $QUERIES + u] * 0.0f;
$VOTE  if (odd[0]) begin = 0;
)";

// One loop over the tiles of all heads.
constexpr std::string_view kSlopesOfKeys =
    R"(  const long tiles = begin < $QUERIES ? ($QUERIES - begin + OTHERS - 1) / OTHERS : 0;
  for (long tile = 0; tile < tiles * $GROUP; ++tile) {
    const long head = key_head * $GROUP + tile / tiles, o0 = begin + tile % tiles * OTHERS;
    LC_GLOBAL const float* const q_head = q + head * $QUERIES * DEPTH;
    LC_GLOBAL const float* const g_head = g + head * $QUERIES * WIDTH;
$MASK$SCORES$SLOPES      LC_UNROLL
      for (int j = 0; j < MY_OTHERS; ++j) {
        const long query = o0 + lane + j * LANES, at = head * $QUERIES + (query < $QUERIES ? query : 0);
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
constexpr std::string_view kKeep = R"(      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        LC_UNROLL
        for (int j = 0; j < MY_OTHERS; ++j) weights[(mine + i) * WEIGHTS_PITCH + lane + j * LANES] = $FROM[i][j];
      }
)";

// A matrix by name, the rows of it that are read, and how long one is.
struct Matrix {
  std::string rows, begin, end;
  int head;
};

class GradientsText {
 public:
  GradientsText(const AttentionGradients& a, const GradientsTile& tile, simt::Language l)
      : a_(a), tile_(tile), language_(l), symbolic_(a.symbolic()) {}
  std::string finite(std::string_view name) const;
  std::string queries(std::string_view name) const;
  std::string keys(std::string_view name) const;

 private:
  std::string size(const Dim& d) const;
  std::string ours(std::string_view text) const;
  std::string begin(std::string_view name, const std::vector<simt::Parameter>& places) const;
  std::string stage(const Matrix& m, int count, const std::string& d0, int columns, int pitch,
                    const std::string& at) const;
  std::string products(const std::string& sum, const Matrix& own, const Matrix& others) const;
  std::string accumulate(const std::string& sum, const Matrix& others) const;
  std::string zeros(const std::string& sum, int head) const;
  std::string results(const std::string& sum, const std::string& out, const std::string& end, int head) const;
  std::string score(bool of_queries) const;
  std::string place_mask() const;
  std::string odd_numbers(const std::string& name, int head) const;
  std::vector<simt::Parameter> operands() const;

  const AttentionGradients& a_;
  const GradientsTile& tile_;
  simt::Language language_;
  std::vector<Dim> symbolic_;
};

std::string GradientsText::size(const Dim& d) const {
  if (const auto c = d.constant()) return to_string(*c) + "L";
  return "n" + to_string(std::ranges::find(symbolic_, d) - symbolic_.begin());
}

std::string GradientsText::ours(std::string_view text) const {
  return filled(text, {{"QUERIES", size(a_.queries)},
                       {"KEYS", size(a_.keys)},
                       {"ROWS", size(a_.rows())},
                       {"GROUP", to_string(a_.group) + "L"},
                       {"SCALE", ir::number(a_.scale, DType::F32)},
                       {"EXPONENT", ir::number(std::numbers::log2e_v<float>, DType::F32)}});
}

std::string GradientsText::begin(std::string_view name, const std::vector<simt::Parameter>& places) const {
  std::string all;
  for (const auto& [n, v] :
       std::initializer_list<std::pair<const char*, int>>{{"ROWS", tile_.rows},
                                                          {"OTHERS", tile_.others},
                                                          {"THREADS", tile_.threads()},
                                                          {"LANES", kLanes},
                                                          {"MY_ROWS", tile_.my_rows()},
                                                          {"MY_OTHERS", tile_.my_others()},
                                                          {"DEPTH", a_.depth},
                                                          {"WIDTH", a_.width},
                                                          {"CHUNK", tile_.chunk},
                                                          {"WEIGHTS", tile_.weights()},
                                                          {"WEIGHTS_PITCH", tile_.weights_pitch()}})
    all += (all.empty() ? "" : ", ") + std::string(n) + " = " + to_string(v);
  return "\n" + simt::begin_kernel(language_, name, tile_.threads(), places, symbolic_.size(), "long", tile_.resident) +
         "  enum { " + all + " };\n";
}

// 16 bytes at once where rows begin at a multiple of them.
int wide(int head) { return head % 4 == 0 ? 4 : 1; }

std::string GradientsText::stage(const Matrix& m, int count, const std::string& d0, int columns, int pitch,
                                 const std::string& at) const {
  const int v = wide(m.head);
  const std::string from = m.rows + " + (" + m.begin + " + r) * " + to_string(m.head) + " + " + d0 + " + c";
  const std::string to = "chunk[$AT + r * $PITCH + c";
  const std::string read = v == 1 ? "              " + to + "] = *(" + from + ");\n"
                                  : "              LC_LOADV(float, 4, w, " + from + ");\n              LC_UNROLL\n" +
                                        "              for (int l = 0; l < 4; ++l) " + to + " + l] = LC_AT(w, l);\n";
  return filled(kGradientsStage, {{"READ", read},
                                  {"COUNT", to_string(count)},
                                  {"COLUMNS", to_string(columns)},
                                  {"BEGIN", m.begin},
                                  {"END", m.end},
                                  {"D0", d0},
                                  {"PITCH", to_string(pitch)},
                                  {"AT", at},
                                  {"N", to_string(m.head)},
                                  {"V", to_string(v)}});
}

std::string GradientsText::products(const std::string& sum, const Matrix& own, const Matrix& others) const {
  const int step = GradientsTile::step(own.head), pitch = GradientsTile::pitch(own.head);
  return filled(kProducts,
                {{"STAGE_OWN", stage(own, tile_.rows, "d0", step, pitch, "0")},
                 {"STAGE_OTHERS", stage(others, tile_.others, "d0", step, pitch, "ROWS * " + to_string(pitch))},
                 {"SUM", sum},
                 {"STEP", to_string(step)},
                 {"PITCH", to_string(pitch)},
                 {"N", to_string(own.head)}});
}

std::string GradientsText::accumulate(const std::string& sum, const Matrix& others) const {
  const int my = GradientsTile::columns(others.head), span = tile_.span(others.head);
  Matrix at_once = others;
  at_once.begin = "o0 + k0";
  return filled(kAccumulate, {{"STAGE", stage(at_once, span, "0", my * kLanes, my * kLanes, "0")},
                              {"SUM", sum},
                              {"SPAN", to_string(span)},
                              {"SIDE", to_string(std::min(my, 4))},
                              {"MY", to_string(my)},
                              {"END", others.end}});
}

std::string GradientsText::zeros(const std::string& sum, int head) const {
  return filled(kZeros, {{"SUM", sum}, {"MY", to_string(GradientsTile::columns(head))}});
}

std::string GradientsText::results(const std::string& sum, const std::string& out, const std::string& end,
                                   int head) const {
  const int my = GradientsTile::columns(head), side = std::min(my, 4), v = side == 4 ? wide(head) : 1;
  const std::string to = out + " + row * " + to_string(head) + " + column";
  const std::string write =
      v == 1 ? "        *(" + to + ") = " + sum + "[i][c];\n"
             : "        LC_VECTOR(float, 4, w);\n        LC_UNROLL\n        for (int l = 0; l < 4; ++l) "
               "LC_AT(w, l) = " +
                   sum + "[i][c + l];\n        LC_STOREV(float, 4, " + to + ", w);\n";
  return filled(kGradientResults, {{"WRITE", write},
                                   {"MY", to_string(my)},
                                   {"SIDE", to_string(side)},
                                   {"END", end},
                                   {"N", to_string(head)},
                                   {"V", to_string(v)}});
}

std::string GradientsText::score(bool of_queries) const {
  const std::string query = of_queries ? "own" : "other", key = of_queries ? "other" : "own";
  std::string also = a_.causal ? " && " + key + " <= " + query : "";
  if (const std::size_t n = a_.mask.size())
    also += " && mask[mask_head + " + query + " * " + size(a_.mask[n - 2].stride) + " + " + key + " * " +
            size(a_.mask[n - 1].stride) + "] != 0";
  const std::string ends[] = {size(a_.queries), size(a_.keys)};
  return filled(kScore, {{"OWN_END", ends[of_queries ? 0 : 1]},
                         {"OTHER_END", ends[of_queries ? 1 : 0]},
                         {"AND", also},
                         {"SCALE", ir::number(a_.scale, DType::F32)}});
}

std::string GradientsText::place_mask() const {
  std::string rest = "head", sum = "0";
  for (std::size_t i = a_.mask.size(); i-- > 2;) {
    const AttentionGradients::MaskAxis& axis = a_.mask[i - 2];
    if (!(axis.stride == Dim(0))) sum += " + " + rest + " % " + size(axis.extent) + " * " + size(axis.stride);
    rest = "(" + rest + " / " + size(axis.extent) + ")";
  }
  return a_.mask.empty() ? "" : "  const long mask_head = " + sum + ";\n";
}

// Adds 0, or NaN where a number of a tile is not finite.
std::string GradientsText::odd_numbers(const std::string& name, int head) const {
  const std::string n = to_string(head), from = name + " + (head * " + size(a_.keys) + " + first) * " + n + " + u";
  if (wide(head) == 1) return "  for (long u = t; u < rows * " + n + "; u += THREADS) sum += *(" + from + ") * 0.0f;\n";
  return "  for (long u = t * 4; u < rows * " + n + "; u += THREADS * 4) {\n    LC_LOADV(float, 4, w, " + from +
         ");\n    LC_UNROLL\n    for (int l = 0; l < 4; ++l) sum += LC_AT(w, l) * 0.0f;\n  }\n";
}

std::vector<simt::Parameter> GradientsText::operands() const {
  std::vector<simt::Parameter> places = {{"float", "q"}, {"float", "k"}, {"float", "v"}, {"float", "g"}};
  if (!a_.mask.empty()) places.push_back({"u8", "mask"});
  return places;
}

std::string GradientsText::finite(std::string_view name) const {
  return begin(name, {{"float", "k"}, {"float", "v"}, {"float", "scratch", true}}) +
         filled(ours(kFiniteTile), {{"SUM_K", odd_numbers("k", a_.depth)},
                                    {"SUM_V", odd_numbers("v", a_.width)},
                                    {"VOTE", filled(kVoteOfBlock, {{"SAYS", "sum != 0.0f"}})}}) +
         "}\n";
}

std::string GradientsText::queries(std::string_view name) const {
  std::vector<simt::Parameter> places = operands();
  places.push_back({"float", "dq", true}), places.push_back({"float", "scratch", true});
  const std::string queries = size(a_.queries), keys = size(a_.keys);
  const Matrix q{"q_head", "first", queries, a_.depth}, k{"k_head", "o0", keys, a_.depth};
  const Matrix g{"g_head", "first", queries, a_.width}, v{"v_head", "o0", keys, a_.width};
  const std::string scores = products("s", q, k), slopes = products("slope", g, v);
  const auto walk = [&](std::string_view text) {
    return filled(ours(text),
                  {{"SCORES", scores}, {"SLOPES", slopes}, {"SCORE", score(true)}, {"ADD", accumulate("sum", k)}});
  };
  std::string out = begin(name, places) + ours(kShared) + filled(ours(kQueriesBegin), {{"MASK", place_mask()}});
  if (a_.causal) out += filled(ours(kQueriesCausal), {{"VOTE", filled(kVoteOfBlock, {{"SAYS", "hidden != 0.0f"}})}});
  out += walk(kStatistics) + ours(kGradientsJoin) + zeros("sum", a_.depth) + walk(kSlopesOfQueries);
  return out + results("sum", "dq + head * " + queries + " * DEPTH", queries, a_.depth) + "}\n";
}

std::string GradientsText::keys(std::string_view name) const {
  std::vector<simt::Parameter> places = operands();
  places.push_back({"float", "scratch"}), places.push_back({"float", "dk", true}),
      places.push_back({"float", "dv", true});
  const std::string queries = size(a_.queries), keys = size(a_.keys);
  const Matrix q{"q_head", "o0", queries, a_.depth}, k{"k_head", "first", keys, a_.depth};
  const Matrix g{"g_head", "o0", queries, a_.width}, v{"v_head", "first", keys, a_.width};
  std::string out = begin(name, places) + ours(kShared) + ours(kKeysBegin);
  // With PoCL 3.1 dK was wrong where a vote decides where the walk begins: on OpenCL nothing is left out.
  if (a_.causal && language_ != simt::Language::OpenCl)
    out += filled(ours(kKeysCausal), {{"VOTE", filled(kVoteOfBlock, {{"SAYS", "hidden != 0.0f"}})}});
  out += zeros("of_keys", a_.depth) + zeros("of_values", a_.width);
  out += filled(ours(kSlopesOfKeys), {{"MASK", place_mask()},
                                      {"SCORES", products("s", k, q)},
                                      {"SLOPES", products("slope", v, g)},
                                      {"SCORE", score(false)},
                                      {"KEEP_SHARES", filled(kKeep, {{"FROM", "s"}})},
                                      {"KEEP_SLOPES", filled(kKeep, {{"FROM", "slope"}})},
                                      {"ADD_VALUES", accumulate("of_values", g)},
                                      {"ADD_KEYS", accumulate("of_keys", q)}});
  out += results("of_keys", "dk + key_head * " + keys + " * DEPTH", keys, a_.depth);
  return out + results("of_values", "dv + key_head * " + keys + " * WIDTH", keys, a_.width) + "}\n";
}

}  // namespace

std::vector<Dim> AttentionGradients::symbolic() const {
  std::vector<Dim> all = {queries, keys, rows()}, symbolic;
  for (const MaskAxis& m : mask) all.push_back(m.extent), all.push_back(m.stride);
  for (const Dim& d : all)
    if (!d.constant() && std::ranges::find(symbolic, d) == symbolic.end()) symbolic.push_back(d);
  return symbolic;
}

int GradientsTile::step(int head) {
  const int steps = (head + kStep - 1) / kStep;
  return up((head + steps - 1) / steps, 4);
}
int GradientsTile::pitch(int head) { return step(head) % 8 == 0 ? step(head) + 4 : step(head); }
int GradientsTile::columns(int head) {
  const int n = (head + kLanes - 1) / kLanes;
  return n > 2 ? up(n, 4) : n;
}
int GradientsTile::span(int head) const {
  int n = others;
  while (n > 4 && n * columns(head) * kLanes > chunk) n /= 2;
  return n;
}
// The lanes' statistics lie there, too.
int GradientsTile::weights() const { return rows * std::max(weights_pitch(), 3 * kLanes); }

std::optional<GradientsTile> gradients_tile(const AttentionGradients& a, const AttentionTarget& target) {
  struct Shape {
    int rows, others, teams;
  };
  const int columns = std::max(GradientsTile::columns(a.depth), GradientsTile::columns(a.width));
  const int pitch = std::max(GradientsTile::pitch(a.depth), GradientsTile::pitch(a.width));
  for (const Shape s : {Shape{64, 64, 16}, {32, 64, 16}, {32, 32, 8}, {16, 32, 8}, {8, 16, 4}}) {
    GradientsTile t{s.rows, s.others, s.teams, std::max((s.rows + s.others) * pitch, 4 * columns * kLanes), 1};
    const int sums = 2 * columns * t.my_rows();  // of dK and dV, in a thread's registers
    if (sums > kSums && t.my_rows() > 2) continue;
    if (sums <= kSums) t.resident = 2;
    const std::int64_t shared = (t.chunk + t.weights() + 3 * t.rows) * 4 + 64;
    if (shared > std::min(target.shared, kStaticShared) || t.threads() > target.threads ||
        t.threads() % target.warp != 0)
      continue;
    return t;
  }
  return std::nullopt;
}

Dim gradients_scratch(const AttentionGradients& a, const GradientsTile& tile) {
  const Dim tiles = (a.keys + Dim(tile.others - 1)) / Dim(tile.others);
  return (Dim(3) * a.rows() + a.key_heads * tiles) * Dim(4);
}

std::string finite_text(const AttentionGradients& a, const GradientsTile& tile, simt::Language l,
                        std::string_view name) {
  return GradientsText(a, tile, l).finite(name);
}
std::string queries_text(const AttentionGradients& a, const GradientsTile& tile, simt::Language l,
                         std::string_view name) {
  return GradientsText(a, tile, l).queries(name);
}
std::string keys_text(const AttentionGradients& a, const GradientsTile& tile, simt::Language l, std::string_view name) {
  return GradientsText(a, tile, l).keys(name);
}

}  // namespace lc::gpu
