#include "lightcone/backends/gpu/attention/text.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <initializer_list>
#include <set>
#include <utility>

#include "lightcone/codegen/c/text.h"
#include "lightcone/codegen/simt/filled.h"

namespace lc::gpu {
namespace {

using lowering::Attention;
using lowering::AttentionStep;
using lowering::CacheType;
using simt::filled;
using std::to_string;

std::string_view stored_type(CacheType t, simt::Language l) {
  if (t == CacheType::I8) return l == simt::Language::OpenCl ? "char" : "signed char";  // what vload16 is defined for
  return t == CacheType::F32 ? "float" : "u16";
}
std::string widened(CacheType t, const std::string& v) {
  switch (t) {
    case CacheType::F16: return "lc_f16_to_f32(" + v + ")";
    case CacheType::BF16: return "lc_bf16_to_f32(" + v + ")";
    case CacheType::I8: return "(float)" + v;
    default: return v;
  }
}

// ---- the many-row and the few-row kernel --------------------------------------------------------

constexpr std::string_view kBegin = R"(
  LC_SHARED(float, queries, PADDED_DEPTH * ROWS);
  LC_SHARED(float, chunk, CHUNK);
  LC_SHARED(float, weights, KEYS * WEIGHT_PITCH);
  LC_SHARED(float, folded, ROWS * (PARTS + (PARTS > 16 ? 16 : 0)));
  LC_SHARED(long, query_at, ROWS);
  LC_SHARED(long, out_at, ROWS);
  LC_SHARED(int, votes, 3);
  const int t = LC_THREAD, lane = t % LANES, mine = t / LANES * MY_ROWS;
  const long group = (long)LC_GROUP, split = group % $SPLITS;
  const long block = $BLOCKS - 1 - group / $SPLITS % $BLOCKS, batch = group / $SPLITS / $BLOCKS;
  const long first = block * ROWS;
  const long begin = split * $SPLIT, end = begin + $SPLIT < keys ? begin + $SPLIT : keys;
  int phase = 0;
  if (t < 3) votes[t] = 0;
)";

// Rows beyond the last are zeros and are not written.
constexpr std::string_view kQueries = R"(
  LC_BARRIER;
  for (int u0 = 0; u0 < ROWS * PADDED_DEPTH; u0 += THREADS) {
    const int u = u0 + t, r = u / PADDED_DEPTH, d = u % PADDED_DEPTH;
    if (u < ROWS * PADDED_DEPTH)
      queries[d * ROWS + r] = d < DEPTH && first + r < $ROWS ? q[query_at[r] + d * q_depth] : 0.0f;
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

// Does any thread say so? The three counters take turns: one is asked while the next is cleared.
constexpr std::string_view kVote = R"(
    if ($SAYS) votes[phase] = 1;
    phase = phase == 2 ? 0 : phase + 1;
    if (t == 0) votes[phase] = 0;
    LC_BARRIER;
    work = votes[phase == 0 ? 2 : phase - 1];
)";

// One vector after the other: all under way at once would push sums out of registers.
constexpr std::string_view kOddValues = R"(
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

constexpr std::string_view kScores = R"(
    if (work) {
      float s[MY_ROWS][MY_KEYS];
      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        LC_UNROLL
        for (int j = 0; j < MY_KEYS; ++j) s[i][j] = 0.0f;
      }
      LC_LOOP
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
      float m[MY_ROWS];
      LC_UNROLL
      for (int i = 0; i < MY_ROWS; ++i) {
        const int r = mine + i;
        const int real = first + r < $ROWS;
        m[i] = -__builtin_inff();
        LC_UNROLL
        for (int j = 0; j < MY_KEYS; ++j) {
          const long key = j0 + lane * MY_KEYS + j;
          float x = s[i][j] * $SCALE;
$STEPS          s[i][j] = key < end && real ? x : -__builtin_inff();
          m[i] = lc_max_f(m[i], s[i][j]);
        }
      }
)";

constexpr std::string_view kWeights = R"(
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
          weights[(lane * MY_KEYS + j) * WEIGHT_PITCH + mine + i] = e;
        }
        LC_UNROLL
        for (int c = 0; c < MY_COLUMNS; ++c) sum[i][c] *= shrink;
      }
      LC_LOOP
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
    }
  }
)";

// A row that sees nothing is a NaN: its maximum is taken from itself.
constexpr std::string_view kResults = R"(
  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    const float share = top[i] == -__builtin_inff() ? top[i] - top[i] : 1.0f / total[i];
    LC_UNROLL
    for (int c = 0; c < MY_COLUMNS; ++c) {
      const int column = c / SIDE * (SIDE * LANES) + lane * SIDE + c % SIDE;
      if (first + mine + i < $ROWS && column < WIDTH) out[out_at[mine + i] + column] = sum[i][c] * share;
    }
  }
)";
constexpr std::string_view kPartials = R"(
  LC_UNROLL
  for (int i = 0; i < MY_ROWS; ++i) {
    const long row = first + mine + i, at = ((batch * $ROWS + row) * $SPLITS + split) * (WIDTH + 2);
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

class Text {
 public:
  Text(const Attention& a, const AttentionSizes& sizes, const AttentionTarget& target)
      : a_(a), l_(a.layout), sizes_(sizes), target_(target) {}
  std::string tiles(const AttentionTile& tile, bool splits, std::string_view name);
  std::string join(std::string_view name);

 private:
  using Axis = lowering::AttentionLayout<Dim>::Axis;
  struct Offset {  // a variable to which each axis adds its index times a stride
    std::string name;
    Dim first;
    std::function<Dim(const Axis&)> stride;
  };
  void line(const std::string& s) { out_ += s + "\n"; }
  std::string size(const Dim& d) const { return sizes_.text(d); }
  std::string ours(std::string_view text) const;
  void constants(const AttentionTile& t);
  void locate(const std::string& indent, const std::string& index, int from, int to, const std::vector<Offset>& offsets);
  void place_batch();
  void place_rows();
  void masks();
  std::string vote(const std::string& says) const { return filled(kVote, {{"SAYS", says}}); }
  std::string scale(bool keys) const;
  std::string odd_values() const;
  std::string stage_keys() const;
  std::string stage_values() const;
  std::string steps() const;
  void fold(const std::string& v, const std::string& joined);
  bool is_mask(int s) const { return a_.scores.step[static_cast<std::size_t>(s)].kind == AttentionStep::Mask; }
  bool reads(int s) const { return is_mask(s) || a_.scores.step[static_cast<std::size_t>(s)].kind == AttentionStep::Bias; }

  const Attention& a_;
  const lowering::AttentionLayout<Dim>& l_;
  const AttentionSizes& sizes_;
  const AttentionTarget& target_;
  AttentionTile tile_{};
  std::string out_;
};

std::string Text::ours(std::string_view text) const {
  return filled(text, {{"ROWS", sizes_.rows()},
                       {"BLOCKS", sizes_.blocks()},
                       {"SPLITS", sizes_.splits()},
                       {"SPLIT", sizes_.split()},
                       {"SCALE", ir::number(a_.scores.scale, DType::F32)},
                       {"EXPONENT", ir::number(a_.scores.exponent, DType::F32)}});
}

void Text::constants(const AttentionTile& t) {
  const int depth = static_cast<int>(*l_.depth.constant()), width = static_cast<int>(*l_.width.constant());
  std::string all;
  for (const auto& [name, v] : std::initializer_list<std::pair<const char*, int>>{
           {"ROWS", t.rows}, {"KEYS", t.keys}, {"THREADS", t.threads()}, {"LANES", t.lanes}, {"MY_ROWS", t.my_rows()},
           {"MY_KEYS", t.my_keys()}, {"MY_COLUMNS", t.columns}, {"SIDE", t.side()}, {"DEPTH", depth},
           {"PADDED_DEPTH", t.depth(depth)}, {"WIDTH", width}, {"COLUMNS", t.columns * t.lanes}, {"STEP", t.step},
           {"PITCH", t.pitch()}, {"WEIGHT_PITCH", t.weight_pitch()}, {"CHUNK", t.chunk()}, {"SPAN", t.span},
           {"PARTS", t.parts(target_.warp)}, {"EXCHANGED", std::min(t.lanes, target_.warp)}})
    all += (all.empty() ? "" : ", ") + std::string(name) + " = " + to_string(v);
  line("  enum { " + all + " };");
}

// Variables that say where element `index` of the axes [from, to) lies.
void Text::locate(const std::string& indent, const std::string& index, int from, int to, const std::vector<Offset>& offsets) {
  std::string rest = "(" + index + ")";
  std::vector<std::string> sums;
  for (const Offset& o : offsets) sums.push_back(size(o.first));
  for (int i = to; i-- > from;) {
    const Axis& axis = l_.axis[static_cast<std::size_t>(i)];
    const std::string here = i > from ? rest + " % " + size(axis.extent) : rest;
    for (std::size_t k = 0; k < offsets.size(); ++k)
      if (const Dim stride = offsets[k].stride(axis); !(stride == Dim(0)))
        sums[k] += " + " + here + " * " + size(stride);
    if (i > from) rest = "(" + rest + " / " + size(axis.extent) + ")";
  }
  for (std::size_t k = 0; k < offsets.size(); ++k) line(indent + offsets[k].name + " = " + sums[k] + ";");
}

void Text::place_batch() {
  std::vector<Offset> all = {{"const long k_first", l_.k_at, [](const Axis& x) { return x.k; }},
                             {"const long v_first", l_.v_at, [](const Axis& x) { return x.v; }}};
  if (a_.k_scale) all.push_back({"const long k_scale_first", l_.k_scale_at, [](const Axis& x) { return x.k_scale; }});
  if (a_.v_scale) all.push_back({"const long v_scale_first", l_.v_scale_at, [](const Axis& x) { return x.v_scale; }});
  locate("  ", "batch", 0, a_.batches, all);
}

// Tables in shared memory of where rows begin.
void Text::place_rows() {
  std::vector<Offset> own = {{"query_at[r]", 0, [](const Axis& x) { return x.q; }},
                             {"out_at[r]", 0, [](const Axis& x) { return x.out; }}};
  std::vector<Offset> common = {{"const long query_batch", l_.q_at, own[0].stride}, {"const long out_batch", 0, own[1].stride}};
  std::vector<std::string> added = {"query_batch", "out_batch"};
  for (int s = 0; s < a_.scores.steps; ++s) {
    if (!reads(s)) continue;
    const auto k = static_cast<std::size_t>(s);
    line("  LC_SHARED(long, step" + to_string(s) + "_at, ROWS);");
    if (const int n = mask_vector(a_, k); n > 1)
      line("  LC_SHARED(u16, bits" + to_string(s) + ", ROWS * KEYS / " + to_string(n) + ");");
    own.push_back({"step" + to_string(s) + "_at[r]", 0, [k](const Axis& x) { return x.step[k]; }});
    common.push_back({"const long step" + to_string(s) + "_batch", l_.step_at[k], own.back().stride});
    added.push_back("step" + to_string(s) + "_batch");
  }
  locate("  ", "batch", 0, a_.batches, common);
  line("  for (int r0 = 0; r0 < ROWS; r0 += THREADS) {\n    const int r = r0 + t;\n    const long row = first + r;");
  line("    if (r < ROWS) {");
  locate("      ", "row", a_.batches, a_.axes, own);
  for (std::size_t k = 0; k < own.size(); ++k) line("      " + own[k].name + " += " + added[k] + ";");
  line("    }\n  }");
}

// Bits of a tile's mask in shared memory, N a number, each read once; then those of a thread's scores.
constexpr std::string_view kWideMask = R"(    for (int u0 = 0; u0 < ROWS * KEYS / $N; u0 += THREADS) {
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
        const int key = lane * MY_KEYS + j;
        kept$K |= ((u32)bits$K[(mine + i) * (KEYS / $N) + key / $N] >> key % $N & 1u) << (i * MY_KEYS + j);
      }
    }
)";
constexpr std::string_view kNarrowMask = R"(    LC_UNROLL
    for (int i = 0; i < MY_ROWS; ++i) {
      const int r = mine + i;
      LC_UNROLL
      for (int j = 0; j < MY_KEYS; ++j) {
        const long key = j0 + lane * MY_KEYS + j;
        if (key < end && first + r < $ROWS && step$K[step$K_at[r] + key * step$K_key] $KEEP)
          kept$K |= 1u << (i * MY_KEYS + j);
      }
    }
)";

// What masks keep, one bit a score; and whether there is anything to do where rows may be left without a key.
void Text::masks() {
  std::string seen;
  for (int s = 0; s < a_.scores.steps; ++s) {
    if (!is_mask(s)) continue;
    const std::string k = to_string(s);
    const int n = mask_vector(a_, static_cast<std::size_t>(s));
    line("    u32 kept" + k + " = 0;");
    out_ += filled(n > 1 ? kWideMask : kNarrowMask,
                   {{"KEEP", a_.scores.step[static_cast<std::size_t>(s)].keep ? "!= 0" : "== 0"},
                    {"K", k},
                    {"N", to_string(n)},
                    {"ROWS", sizes_.rows()}});
    if (s >= a_.scores.skips) seen += (seen.empty() ? "" : " & ") + ("kept" + k);
  }
  if (seen.empty()) return;
  out_ += vote("(" + seen + ") != 0");
  if (a_.scores.v_type != CacheType::I8 || a_.v_scale)
    out_ += odd_values();
}

std::string Text::scale(bool keys) const {
  if (!(keys ? a_.k_scale : a_.v_scale)) return "";
  const std::string c = keys ? "k" : "v";
  return c + "_scale[" + c + "_scale_first + key * " + c + "_scale_key]";
}

std::string Text::odd_values() const {
  const CacheType type = a_.scores.v_type;
  const std::string by = to_string(value_vector(a_, tile_)), from = "v + v_first + key * v_key + c * v_width";
  const std::string stored(stored_type(type, target_.language));
  const std::string read = by == "1" ? "" : "          LC_LOADV(" + stored + ", " + by + ", w, " + from + ");\n";
  std::string value = widened(type, by == "1" ? "*(" + from + ")" : "LC_AT(w, l)");
  if (a_.v_scale) value = "(" + value + " * " + scale(false) + ")";
  return filled(kOddValues, {{"READ", read}, {"VALUE", value}, {"VOTE", vote("odd != 0.0f")}, {"N", by}});
}

constexpr std::string_view kStage = R"(        for (int u0 = 0; u0 < $UNITS; u0 += THREADS) {
          const int u = u0 + t, $SPLIT_UNIT;
          const long key = $KEY;
          if (u < $UNITS) {
            if (key < end && $COLUMN < $EXTENT) {
$READ            } else {
              LC_UNROLL
              for (int l = 0; l < $N; ++l) $TO = 0.0f;
            }
          }
        }
)";

std::string Text::stage_keys() const {
  const CacheType type = a_.scores.k_type;
  const int n = key_vector(a_, tile_);
  const bool along_keys = l_.k_key == Dim(1) && !(l_.k_depth == Dim(1));  // neighbours in memory for neighbouring threads
  const std::string by = to_string(n), scaled = a_.k_scale ? " * factor" : "";
  const std::string factor = a_.k_scale ? "              const float factor = " + scale(true) + ";\n" : "";
  const std::string from = "k + k_first + key * k_key + (d0 + d) * k_depth", to = "chunk[(d + l) * PITCH + kk]";
  const std::string read =
      n == 1 ? "              chunk[d * PITCH + kk] = " + widened(type, "*(" + from + ")") + scaled + ";\n"
             : "              LC_LOADV(" + std::string(stored_type(type, target_.language)) + ", " + by + ", w, " + from +
                   ");\n              LC_UNROLL\n              for (int l = 0; l < " + by + "; ++l) " + to + " = " +
                   widened(type, "LC_AT(w, l)") + scaled + ";\n";
  const std::string units = "KEYS * STEP / " + by;
  return filled(kStage, {{"UNITS", units},
                         {"SPLIT_UNIT", along_keys ? "kk = u % KEYS, d = u / KEYS"
                                                   : "kk = u / (STEP / " + by + "), d = u % (STEP / " + by + ") * " + by},
                         {"KEY", "j0 + kk"},
                         {"COLUMN", "d0 + d"},
                         {"EXTENT", "DEPTH"},
                         {"READ", factor + read},
                         {"N", by},
                         {"TO", to}});
}

std::string Text::stage_values() const {
  const CacheType type = a_.scores.v_type;
  const int n = value_vector(a_, tile_);
  const std::string by = to_string(n), scaled = a_.v_scale ? " * factor" : "";
  const std::string factor = a_.v_scale ? "              const float factor = " + scale(false) + ";\n" : "";
  const std::string to = "chunk[kk * COLUMNS + c + l]", from = "v + v_first + key * v_key + c * v_width";
  const std::string read =
      n == 1 ? "              chunk[kk * COLUMNS + c] = " + widened(type, "*(" + from + ")") + scaled + ";\n"
             : "              LC_LOADV(" + std::string(stored_type(type, target_.language)) + ", " + by + ", w, " + from +
                   ");\n              LC_UNROLL\n              for (int l = 0; l < " + by + "; ++l) " + to + " = " +
                   widened(type, "LC_AT(w, l)") + scaled + ";\n";
  return filled(kStage, {{"UNITS", "SPAN * COLUMNS / " + by},
                         {"SPLIT_UNIT", "kk = u / (COLUMNS / " + by + "), c = u % (COLUMNS / " + by + ") * " + by},
                         {"KEY", "j0 + k0 + kk"},
                         {"COLUMN", "c"},
                         {"EXTENT", "WIDTH"},
                         {"READ", factor + read},
                         {"N", by},
                         {"TO", to}});
}

std::string Text::steps() const {
  std::string s;
  for (int k = 0; k < a_.scores.steps; ++k) {
    const AttentionStep& step = a_.scores.step[static_cast<std::size_t>(k)];
    const std::string n = to_string(k);
    switch (step.kind) {
      case AttentionStep::Scale: s += "          x = x * " + ir::number(step.value, DType::F32) + ";\n"; break;
      case AttentionStep::Shift: s += "          x = x + " + ir::number(step.value, DType::F32) + ";\n"; break;
      case AttentionStep::Bias:
        s += "          if (key < end && real) x = x + step" + n + "[step" + n + "_at[r] + key * step" + n + "_key];\n";
        break;
      case AttentionStep::Mask:
        s += "          x = (kept" + n + " >> (i * MY_KEYS + j) & 1u) ? x : " + ir::number(step.value, DType::F32) +
             ";\n";
        break;
    }
  }
  return s;
}

// The lanes of each row fold their `v`, in an order that depends on their number alone; all of them get the result.
void Text::fold(const std::string& v, const std::string& joined) {
  const auto with = [&](const std::string& a, const std::string& b) { return joined + "(" + a + ", " + b + ")"; };
  const int parts = tile_.parts(target_.warp);
  if (target_.warp > 1) {
    line("    LC_UNROLL\n    for (int i = 0; i < MY_ROWS; ++i) {\n      LC_UNROLL");
    line("      for (int by = EXCHANGED / 2; by > 0; by /= 2) " + v + "[i] = " + with(v + "[i]", "lc_shuffle_f(" + v + "[i], by)") +
         ";\n    }");
  }
  if (parts == 1) return;
  line("    LC_BARRIER;\n    LC_UNROLL\n    for (int i = 0; i < MY_ROWS; ++i)");
  line("      if (lane % EXCHANGED == 0) folded[(mine + i) * PARTS + lane / EXCHANGED] = " + v + "[i];\n    LC_BARRIER;");
  if (parts > 16) {
    line("    for (int u0 = 0; u0 < ROWS * 16; u0 += THREADS) {\n      const int u = u0 + t;\n      if (u < ROWS * 16) {");
    line("        float x = folded[u * (PARTS / 16)];\n        for (int p = 1; p < PARTS / 16; ++p) x = " +
         with("x", "folded[u * (PARTS / 16) + p]") + ";");
    line("        folded[ROWS * PARTS + u] = x;\n      }\n    }\n    LC_BARRIER;");
  }
  const std::string from = parts > 16 ? "folded[ROWS * PARTS + (mine + i) * 16" : "folded[(mine + i) * PARTS";
  line("    LC_UNROLL\n    for (int i = 0; i < MY_ROWS; ++i) {\n      " + v + "[i] = " + from + "];");
  line("      for (int p = 1; p < " + to_string(std::min(parts, 16)) + "; ++p) " + v + "[i] = " + with(v + "[i]", from + " + p]") +
       ";\n    }");
}

std::string Text::tiles(const AttentionTile& tile, bool splits, std::string_view name) {
  tile_ = tile;
  std::vector<simt::Parameter> places(a_.operands.size());
  places[0] = {"float", "q"}, places[1] = {std::string(stored_type(a_.scores.k_type, target_.language)), "k"};
  places[2] = {std::string(stored_type(a_.scores.v_type, target_.language)), "v"};
  if (a_.k_scale) places[static_cast<std::size_t>(a_.k_scale)] = {"float", "k_scale"};
  if (a_.v_scale) places[static_cast<std::size_t>(a_.v_scale)] = {"float", "v_scale"};
  std::string aliases;
  for (int s = 0; s < a_.scores.steps; ++s) {
    if (!reads(s)) continue;
    const auto k = static_cast<std::size_t>(a_.operand[static_cast<std::size_t>(s)]);
    const std::string n = "step" + to_string(s);
    if (places[k].name.empty()) places[k] = {is_mask(s) ? "u8" : "float", n};
    else aliases += "  LC_GLOBAL const " + places[k].type + "* const " + n + " = " + places[k].name + ";\n";
    aliases += "  const long " + n + "_key = " + size(l_.step_key[static_cast<std::size_t>(s)]) + ";\n";
  }
  places.push_back({"float", "out", true});
  if (splits) places.push_back({"float", "partial", true});
  out_ = "\n" + simt::begin_kernel(target_.language, name, tile.threads(), places, sizes_.count(), "long",
                                   tile.resident()) +
         aliases;
  constants(tile);
  for (const auto& [stride, v] : std::initializer_list<std::pair<const char*, Dim>>{
           {"keys", l_.keys}, {"q_depth", l_.q_depth}, {"k_key", l_.k_key}, {"k_depth", l_.k_depth}, {"v_key", l_.v_key},
           {"v_width", l_.v_width}})
    line("  const long " + std::string(stride) + " = " + size(v) + ";");
  if (a_.k_scale) line("  const long k_scale_key = " + size(l_.k_scale_key) + ";");
  if (a_.v_scale) line("  const long v_scale_key = " + size(l_.v_scale_key) + ";");
  out_ += ours(kBegin);
  place_batch();
  place_rows();
  out_ += ours(kQueries);
  masks();
  out_ += filled(ours(kScores), {{"LOAD_KEYS", stage_keys()}, {"STEPS", steps()}});
  fold("m", "lc_max_f");
  out_ += filled(ours(kWeights), {{"LOAD_VALUES", stage_values()}});
  fold("total", "lc_add_f");
  if (splits) out_ += "  if (" + sizes_.splits() + " > 1) {" + ours(kPartials) + "  } else {" + ours(kResults) + "  }\n";
  else out_ += ours(kResults);
  return out_ + "}\n";
}

// ---- the splits together ------------------------------------------------------------------------

constexpr std::string_view kJoin = R"(
  const int t = LC_THREAD;
  const long group = (long)LC_GROUP, batch = group / $ROWS, row = group % $ROWS;
$PLACE  LC_GLOBAL const float* const mine = partial + group * $SPLITS * ($WIDTH + 2);
  float top = -__builtin_inff(), total = 0.0f;
  for (long s = 0; s < $SPLITS; ++s) top = lc_max_f(top, mine[s * ($WIDTH + 2) + $WIDTH]);
  const float base = top == -__builtin_inff() ? 0.0f : top;
  for (long s = 0; s < $SPLITS; ++s)
    total += mine[s * ($WIDTH + 2) + $WIDTH + 1] * lc_exp2_f((mine[s * ($WIDTH + 2) + $WIDTH] - base) * $EXPONENT);
  const float share = top == -__builtin_inff() ? top - top : 1.0f / total;
  for (int c0 = 0; c0 < $WIDTH; c0 += $THREADS) {
    const int c = c0 + t;
    if (c < $WIDTH) {
      float sum = 0.0f;
      for (long s = 0; s < $SPLITS; ++s)
        sum = lc_mul_add_f(mine[s * ($WIDTH + 2) + c], lc_exp2_f((mine[s * ($WIDTH + 2) + $WIDTH] - base) * $EXPONENT), sum);
      out[at + c] = sum * share;
    }
  }
}
)";

std::string Text::join(std::string_view name) {
  const simt::Parameter places[] = {{"float", "partial"}, {"float", "out", true}};
  const auto out = [](const Axis& x) { return x.out; };
  locate("  ", "batch", 0, a_.batches, {{"const long at_batch", 0, out}});
  locate("  ", "row", a_.batches, a_.axes, {{"const long at_row", 0, out}});
  line("  const long at = at_batch + at_row;");
  const std::string place = std::exchange(out_, {});
  const int threads = join_threads(a_, target_);
  return "\n" + simt::begin_kernel(target_.language, name, threads, places, sizes_.count(), "long") +
         filled(ours(kJoin), {{"PLACE", place}, {"WIDTH", to_string(*l_.width.constant())}, {"THREADS", to_string(threads)}});
}

}  // namespace

AttentionSizes::AttentionSizes(lowering::AttentionLayout<Dim> layout) {
  layout.each([&](const Dim& d) {
    if (!d.is_constant() && std::ranges::find(symbolic_, d) == symbolic_.end()) symbolic_.push_back(d);
  });
}

std::string AttentionSizes::text(const Dim& d) const {
  if (const auto c = d.constant()) return *c < 0 ? "(" + to_string(*c) + "L)" : to_string(*c) + "L";
  return "n" + to_string(std::ranges::find(symbolic_, d) - symbolic_.begin());
}

std::string attention_text(const Attention& a, const AttentionSizes& sizes, const AttentionTile& tile,
                           const AttentionTarget& target, bool splits, std::string_view name) {
  return Text(a, sizes, target).tiles(tile, splits, name);
}
std::string join_text(const Attention& a, const AttentionSizes& sizes, const AttentionTarget& target, std::string_view name) {
  return Text(a, sizes, target).join(name);
}
int join_threads(const Attention& a, const AttentionTarget& target) {
  const auto columns = static_cast<unsigned>(*a.layout.width.constant());
  return std::min(target.threads, std::max(static_cast<int>(std::bit_ceil(columns)), 32));
}

}  // namespace lc::gpu
