#include "lightcone/backends/gpu/attention/text.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <initializer_list>
#include <set>
#include <utility>

#include "lightcone/backends/gpu/attention/pieces.h"
#include "lightcone/codegen/c/text.h"
#include "lightcone/codegen/simt/filled.h"
#include "lightcone/codegen/simt/tensor_cores.h"

namespace lc::backends::gpu {
namespace {

using codegen::simt::filled;
using lowering::Attention;
using lowering::AttentionStep;
using std::to_string;

std::string_view stored_type(CacheType t, codegen::simt::Language l) {
  if (t == CacheType::I8)
    return l == codegen::simt::Language::OpenCl ? "char" : "signed char";  // the type that vload16 takes
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

class Text {
 public:
  Text(const Attention& a, const AttentionSizes& sizes, const AttentionTarget& target)
      : a_(a), l_(a.layout), sizes_(sizes), target_(target) {}
  std::string tiles(const AttentionTile& tile, bool splits, std::string_view name);
  std::string join(std::string_view name);

 private:
  using Axis = lowering::AttentionLayout<Dim>::Axis;
  struct Offset {  // a variable: `first` plus each axis's index times its stride
    std::string name;
    Dim first;
    std::function<Dim(const Axis&)> stride;
  };
  void line(const std::string& s) { out_ += s + "\n"; }
  std::string size(const Dim& d) const { return sizes_.text(d); }
  std::string ours(std::string_view text) const;
  void constants(const AttentionTile& t);
  void locate(const std::string& indent, const std::string& index, int from, int to,
              const std::vector<Offset>& offsets);
  void locate_batch();
  void locate_rows();
  void masks();
  std::string vote(const std::string& says) const { return filled(pieces::kVote, {{"SAYS", says}}); }
  std::string scale(bool keys) const;
  std::string odd_values() const;
  std::string stored(CacheType type, int n, const std::string& from, const std::string& to, const std::string& number,
                     const std::string& scaled) const;
  // Limits the reads in flight to `n`, if more would spill sums.
  std::string under_way(int n) const { return tile_.cores ? "#pragma unroll " + to_string(n) + "\n" : ""; }
  std::string stage_keys() const;
  std::string stage_values() const;
  std::string steps() const;
  void fold(const std::string& v, const std::string& joined);
  bool is_mask(int s) const { return a_.scores.step[s].kind == AttentionStep::Mask; }
  bool reads(int s) const { return is_mask(s) || a_.scores.step[s].kind == AttentionStep::Bias; }

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
                       {"SCALE", codegen::number(a_.scores.scale, DType::F32)},
                       {"EXPONENT", codegen::number(a_.scores.exponent, DType::F32)}});
}

void Text::constants(const AttentionTile& t) {
  const int depth = static_cast<int>(*l_.depth.constant()), width = static_cast<int>(*l_.width.constant());
  std::string all;
  for (const auto& [name, v] :
       std::initializer_list<std::pair<const char*, int>>{{"ROWS", t.rows},
                                                          {"KEYS", t.keys},
                                                          {"THREADS", t.threads()},
                                                          {"LANES", t.lanes},
                                                          {"MY_ROWS", t.my_rows()},
                                                          {"MY_KEYS", t.my_keys()},
                                                          {"MY_COLUMNS", t.columns},
                                                          {"SIDE", t.side()},
                                                          {"DEPTH", depth},
                                                          {"PADDED_DEPTH", t.depth(depth)},
                                                          {"WIDTH", width},
                                                          {"COLUMNS", t.columns * t.lanes},
                                                          {"STEP", t.step},
                                                          {"PITCH", t.pitch()},
                                                          {"WEIGHT_PITCH", t.weight_pitch()},
                                                          {"CHUNK", t.chunk()},
                                                          {"SPAN", t.span},
                                                          {"ROW_STEP", t.row_step()},
                                                          {"KEY_SIDE", t.key_side()},
                                                          {"KEY_PITCH", t.depth(depth) + kCorePad},
                                                          {"VALUE_PITCH", t.columns * t.lanes + kCorePad},
                                                          {"PARTS", t.parts(target_.warp)},
                                                          {"EXCHANGED", std::min(t.lanes, target_.warp)}})
    all += (all.empty() ? "" : ", ") + std::string(name) + " = " + to_string(v);
  line("  enum { " + all + " };");
}

// Defines variables with the offsets of element `index` of the axes [from, to).
void Text::locate(const std::string& indent, const std::string& index, int from, int to,
                  const std::vector<Offset>& offsets) {
  std::string rest = "(" + index + ")";
  std::vector<std::string> sums;
  for (const Offset& o : offsets) sums.push_back(size(o.first));
  for (int i = to; i-- > from;) {
    const Axis& axis = l_.axis[i];
    const std::string here = i > from ? rest + " % " + size(axis.extent) : rest;
    for (std::size_t k = 0; k < offsets.size(); ++k)
      if (const Dim stride = offsets[k].stride(axis); !(stride == Dim(0)))
        sums[k] += " + " + here + " * " + size(stride);
    if (i > from) rest = "(" + rest + " / " + size(axis.extent) + ")";
  }
  for (std::size_t k = 0; k < offsets.size(); ++k) line(indent + offsets[k].name + " = " + sums[k] + ";");
}

void Text::locate_batch() {
  std::vector<Offset> all = {{"const long k_first", l_.k_at, [](const Axis& x) { return x.k; }},
                             {"const long v_first", l_.v_at, [](const Axis& x) { return x.v; }}};
  if (a_.k_scale) all.push_back({"const long k_scale_first", l_.k_scale_at, [](const Axis& x) { return x.k_scale; }});
  if (a_.v_scale) all.push_back({"const long v_scale_first", l_.v_scale_at, [](const Axis& x) { return x.v_scale; }});
  locate("  ", "batch", 0, a_.batches, all);
}

// Fills tables in shared memory of the offsets at which rows begin.
void Text::locate_rows() {
  std::vector<Offset> own = {{"query_at[r]", 0, [](const Axis& x) { return x.q; }},
                             {"out_at[r]", 0, [](const Axis& x) { return x.out; }}};
  std::vector<Offset> common = {{"const long query_batch", l_.q_at, own[0].stride},
                                {"const long out_batch", 0, own[1].stride}};
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

// Computes the masks' bits, one per score, and votes whether the tile has any work, if rows may be left without a key.
void Text::masks() {
  std::string seen;
  for (int s = 0; s < a_.scores.steps; ++s) {
    if (!is_mask(s)) continue;
    const std::string k = to_string(s);
    const int n = mask_vector(a_, static_cast<std::size_t>(s));
    line("    u32 kept" + k + " = 0;");
    out_ += filled(
        n > 1 ? pieces::kWideMask : pieces::kNarrowMask,
        {{"KEEP", a_.scores.step[s].keep ? "!= 0" : "== 0"}, {"K", k}, {"N", to_string(n)}, {"ROWS", sizes_.rows()}});
    if (s >= a_.scores.skips) seen += (seen.empty() ? "" : " & ") + ("kept" + k);
  }
  if (seen.empty()) return;
  out_ += vote("(" + seen + ") != 0");
  if (a_.scores.v_type != CacheType::I8 || a_.v_scale) out_ += odd_values();
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
  return filled(pieces::kOddValues, {{"READ", read}, {"VALUE", value}, {"VOTE", vote("odd != 0.0f")}, {"N", by}});
}

// Reads `n` numbers from `from` and stores them: the l-th as `number`, or, for tensor cores, as u16 from `to` on.
std::string Text::stored(CacheType type, int n, const std::string& from, const std::string& to,
                         const std::string& number, const std::string& scaled) const {
  const std::string indent = "              ", by = to_string(n), memory(stored_type(type, target_.language));
  const std::string each = indent + "LC_UNROLL\n" + indent + "for (int l = 0; l < " + by + "; ++l) ";
  const std::string read = indent + "LC_LOADV(" + memory + ", " + by + ", w, " + from + ");\n";
  if (!tile_.cores)
    return n == 1 ? indent + "const int l = 0;\n" + indent + number + " = " + widened(type, "*(" + from + ")") +
                        scaled + ";\n"
                  : read + each + number + " = " + widened(type, "LC_AT(w, l)") + scaled + ";\n";
  const auto half = [&](const std::string& v) {
    return type == CacheType::BF16 && scaled.empty() ? v : "lc_f32_to_bf16(" + widened(type, v) + scaled + ")";
  };
  if (n == 1) return indent + "*(" + to + ") = " + half("*(" + from + ")") + ";\n";
  return read + indent + "LC_VECTOR(u16, " + by + ", z);\n" + each + "LC_AT(z, l) = " + half("LC_AT(w, l)") + ";\n" +
         indent + "LC_STOREV(u16, " + by + ", " + to + ", z);\n";
}

std::string Text::stage_keys() const {
  const int n = key_vector(a_, tile_);
  const bool along_keys = l_.k_key == Dim(1) && !(l_.k_depth == Dim(1));  // adjacent threads read adjacent keys
  const std::string by = to_string(n), depth = tile_.cores ? "PADDED_DEPTH" : "STEP";
  const std::string factor = a_.k_scale ? "              const float factor = " + scale(true) + ";\n" : "";
  const std::string number = tile_.cores ? "chunk[kk * KEY_PITCH + d + l]" : "chunk[(d + l) * PITCH + kk]";
  return filled(pieces::kStage,
                {{"UNROLL", under_way(tile_.core_depth > 64 ? 2 : 4)},
                 {"UNITS", "KEYS * " + depth + " / " + by},
                 {"SPLIT_UNIT",
                  along_keys ? "kk = u % KEYS, d = u / KEYS"
                             : "kk = u / (" + depth + " / " + by + "), d = u % (" + depth + " / " + by + ") * " + by},
                 {"KEY", "j0 + kk"},
                 {"COLUMN", "d0 + d"},
                 {"EXTENT", "DEPTH"},
                 {"READ", factor + stored(a_.scores.k_type, n, "k + k_first + key * k_key + (d0 + d) * k_depth",
                                          "chunk + kk * KEY_PITCH + d", number, a_.k_scale ? " * factor" : "")},
                 {"N", by},
                 {"TO", number}});
}

std::string Text::stage_values() const {
  const int n = value_vector(a_, tile_);
  const std::string by = to_string(n), pitch = tile_.cores ? "VALUE_PITCH" : "COLUMNS";
  const std::string factor = a_.v_scale ? "              const float factor = " + scale(false) + ";\n" : "";
  const std::string number = "chunk[kk * " + pitch + " + c + l]";
  return filled(pieces::kStage,
                {{"UNROLL", under_way(2)},
                 {"UNITS", "SPAN * COLUMNS / " + by},
                 {"SPLIT_UNIT", "kk = u / (COLUMNS / " + by + "), c = u % (COLUMNS / " + by + ") * " + by},
                 {"KEY", "j0 + k0 + kk"},
                 {"COLUMN", "c"},
                 {"EXTENT", "WIDTH"},
                 {"READ", factor + stored(a_.scores.v_type, n, "v + v_first + key * v_key + c * v_width",
                                          "chunk + kk * VALUE_PITCH + c", number, a_.v_scale ? " * factor" : "")},
                 {"N", by},
                 {"TO", number}});
}

std::string Text::steps() const {
  std::string s;
  for (int k = 0; k < a_.scores.steps; ++k) {
    const AttentionStep& step = a_.scores.step[k];
    const std::string n = to_string(k);
    switch (step.kind) {
      case AttentionStep::Scale: s += "          x = x * " + codegen::number(step.value, DType::F32) + ";\n"; break;
      case AttentionStep::Shift: s += "          x = x + " + codegen::number(step.value, DType::F32) + ";\n"; break;
      case AttentionStep::Bias:
        s += "          if (key < end && real) x = x + step" + n + "[step" + n + "_at[r] + key * step" + n + "_key];\n";
        break;
      case AttentionStep::Mask:
        s += "          x = (kept" + n +
             " >> (i * MY_KEYS + j) & 1u) ? x : " + codegen::number(step.value, DType::F32) + ";\n";
        break;
    }
  }
  return s;
}

// Reduces `v` over the lanes of each row, in an order that depends on their number alone. All lanes get the result.
void Text::fold(const std::string& v, const std::string& joined) {
  const auto with = [&](const std::string& a, const std::string& b) { return joined + "(" + a + ", " + b + ")"; };
  const int parts = tile_.parts(target_.warp);
  if (target_.warp > 1) {
    line("    LC_UNROLL\n    for (int i = 0; i < MY_ROWS; ++i) {\n      LC_UNROLL");
    line("      for (int by = EXCHANGED / 2; by > 0; by /= 2) " + v +
         "[i] = " + with(v + "[i]", "lc_shuffle_f(" + v + "[i], by)") + ";\n    }");
  }
  if (parts == 1) return;
  line("    LC_BARRIER;\n    LC_UNROLL\n    for (int i = 0; i < MY_ROWS; ++i)");
  line("      if (lane % EXCHANGED == 0) folded[(mine + i) * PARTS + lane / EXCHANGED] = " + v +
       "[i];\n    LC_BARRIER;");
  if (parts > 16) {
    line(
        "    for (int u0 = 0; u0 < ROWS * 16; u0 += THREADS) {\n      const int u = u0 + t;\n      if (u < ROWS * 16) "
        "{");
    line("        float x = folded[u * (PARTS / 16)];\n        for (int p = 1; p < PARTS / 16; ++p) x = " +
         with("x", "folded[u * (PARTS / 16) + p]") + ";");
    line("        folded[ROWS * PARTS + u] = x;\n      }\n    }\n    LC_BARRIER;");
  }
  const std::string from = parts > 16 ? "folded[ROWS * PARTS + (mine + i) * 16" : "folded[(mine + i) * PARTS";
  line("    LC_UNROLL\n    for (int i = 0; i < MY_ROWS; ++i) {\n      " + v + "[i] = " + from + "];");
  line("      for (int p = 1; p < " + to_string(std::min(parts, 16)) + "; ++p) " + v +
       "[i] = " + with(v + "[i]", from + " + p]") + ";\n    }");
}

std::string Text::tiles(const AttentionTile& tile, bool splits, std::string_view name) {
  tile_ = tile;
  std::vector<codegen::simt::Parameter> parameters(a_.operands.size());
  parameters[0] = {"float", "q"}, parameters[1] = {std::string(stored_type(a_.scores.k_type, target_.language)), "k"};
  parameters[2] = {std::string(stored_type(a_.scores.v_type, target_.language)), "v"};
  if (a_.k_scale) parameters[a_.k_scale] = {"float", "k_scale"};
  if (a_.v_scale) parameters[a_.v_scale] = {"float", "v_scale"};
  std::string aliases;
  for (int s = 0; s < a_.scores.steps; ++s) {
    if (!reads(s)) continue;
    const auto k = static_cast<std::size_t>(a_.operand[s]);
    const std::string n = "step" + to_string(s);
    if (parameters[k].name.empty()) parameters[k] = {is_mask(s) ? "u8" : "float", n};
    else aliases += "  LC_GLOBAL const " + parameters[k].type + "* const " + n + " = " + parameters[k].name + ";\n";
    aliases += "  const long " + n + "_key = " + size(l_.step_key[s]) + ";\n";
  }
  parameters.push_back({"float", "out", true});
  if (splits) parameters.push_back({"float", "partial", true});
  out_ = "\n" +
         codegen::simt::begin_kernel(target_.language, name, tile.threads(), parameters, sizes_.count(), "long",
                                     tile.resident()) +
         aliases;
  constants(tile);
  for (const auto& [stride, v] : std::initializer_list<std::pair<const char*, Dim>>{{"keys", l_.keys},
                                                                                    {"q_depth", l_.q_depth},
                                                                                    {"k_key", l_.k_key},
                                                                                    {"k_depth", l_.k_depth},
                                                                                    {"v_key", l_.v_key},
                                                                                    {"v_width", l_.v_width}})
    line("  const long " + std::string(stride) + " = " + size(v) + ";");
  if (a_.k_scale) line("  const long k_scale_key = " + size(l_.k_scale_key) + ";");
  if (a_.v_scale) line("  const long v_scale_key = " + size(l_.v_scale_key) + ";");
  out_ += filled(ours(pieces::kBegin), {{"ARRAYS", std::string(tile.cores ? pieces::kCoreArrays : pieces::kArrays)},
                                        {"MINE", tile.cores ? "t / 32 * 16 + t % 32 / 4" : "t / LANES * MY_ROWS"}});
  locate_batch();
  locate_rows();
  out_ += filled(ours(pieces::kQueries), {{"KEEP_QUERY", tile.cores ? "queries[r * KEY_PITCH + d] = lc_f32_to_bf16(x)"
                                                                    : "queries[d * ROWS + r] = x"}});
  masks();
  out_ +=
      filled(ours(pieces::kScores), {{"PRODUCTS", std::string(tile.cores ? pieces::kCoreProducts : pieces::kProducts)},
                                     {"LOAD_KEYS", stage_keys()},
                                     {"STEPS", steps()}});
  fold("m", "lc_max_f");
  out_ += filled(
      ours(pieces::kWeights),
      {{"SUMS", std::string(tile.cores ? pieces::kCoreSums : pieces::kSums)},
       {"KEEP_WEIGHT", tile.cores ? "s[i][j] = e" : "weights[(lane * MY_KEYS + j) * WEIGHT_PITCH + mine + i] = e"},
       {"LOAD_VALUES", stage_values()}});
  fold("total", "lc_add_f");
  if (splits)
    out_ += "  if (" + sizes_.splits() + " > 1) {" + ours(pieces::kPartials) + "  } else {" + ours(pieces::kResults) +
            "  }\n";
  else out_ += ours(pieces::kResults);
  return (tile.cores ? std::string(codegen::simt::tensor_primitives()) : "") + out_ + "}\n";
}

// ---- the splits together ------------------------------------------------------------------------

constexpr std::string_view kJoin = R"(
  const int t = LC_THREAD;
  const long group = (long)LC_GROUP, batch = group / $ROWS, row = group % $ROWS;
$LOCATE  LC_GLOBAL const float* const mine = partial + group * $SPLITS * ($WIDTH + 2);
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
  const codegen::simt::Parameter parameters[] = {{"float", "partial"}, {"float", "out", true}};
  const auto out = [](const Axis& x) { return x.out; };
  locate("  ", "batch", 0, a_.batches, {{"const long at_batch", 0, out}});
  locate("  ", "row", a_.batches, a_.axes, {{"const long at_row", 0, out}});
  line("  const long at = at_batch + at_row;");
  const std::string located = std::exchange(out_, {});
  const int threads = join_threads(a_, target_);
  return "\n" + codegen::simt::begin_kernel(target_.language, name, threads, parameters, sizes_.count(), "long") +
         filled(ours(kJoin),
                {{"LOCATE", located}, {"WIDTH", to_string(*l_.width.constant())}, {"THREADS", to_string(threads)}});
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
std::string join_text(const Attention& a, const AttentionSizes& sizes, const AttentionTarget& target,
                      std::string_view name) {
  return Text(a, sizes, target).join(name);
}
int join_threads(const Attention& a, const AttentionTarget& target) {
  const auto columns = static_cast<unsigned>(*a.layout.width.constant());
  return std::min(target.threads, std::max(static_cast<int>(std::bit_ceil(columns)), 32));
}

}  // namespace lc::backends::gpu
