#include "lightcone/backends/gpu/attention/gradients_text.h"

#include <algorithm>
#include <initializer_list>
#include <numbers>
#include <utility>

#include "lightcone/backends/gpu/attention/gradients_pieces.h"
#include "lightcone/codegen/c/text.h"
#include "lightcone/codegen/simt/filled.h"
#include "lightcone/codegen/simt/tensor_cores.h"

namespace lc::backends::gpu {
namespace {

using codegen::simt::filled;
using std::to_string;

constexpr int kSums = 32;

// A matrix: its name, the range of its rows that is read, and their length.
struct Matrix {
  std::string rows, begin, end;
  int head;
};

class GradientsText {
 public:
  GradientsText(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l)
      : a_(a), tile_(tile), language_(l), symbolic_(a.symbolic()) {}
  std::string finite(std::string_view name) const;
  std::string queries(std::string_view name) const;
  std::string keys(std::string_view name) const;

 private:
  std::string size(const Dim& d) const;
  std::string ours(std::string_view text) const;
  std::string begin(std::string_view name, const std::vector<codegen::simt::Parameter>& parameters) const;
  std::string stage(const Matrix& m, int count, const std::string& d0, int columns, int pitch,
                    const std::string& at) const;
  std::string products(const std::string& sum, const Matrix& own, const Matrix& others) const;
  std::string accumulate(const std::string& sum, const std::string& from, const Matrix& others) const;
  std::string zeros(const std::string& sum, int head) const;
  std::string results(const std::string& sum, const std::string& out, const std::string& end, int head) const;
  std::string shared() const;
  // Returns where a weight is stored until it is multiplied.
  std::string kept(const std::string& from) const;
  // Returns the text that stores all weights.
  std::string keep(const std::string& from) const;
  std::string score(bool of_queries) const;
  std::string locate_mask() const;
  std::string odd_numbers(const std::string& name, int head) const;
  std::vector<codegen::simt::Parameter> operands() const;

  const AttentionGradients& a_;
  const GradientsTile& tile_;
  codegen::simt::Language language_;
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
                       {"OTHER", tile_.cores ? "j / 2 * 8 + lane * 2 + j % 2" : "lane + j * LANES"},
                       {"SCALE", codegen::number(a_.scale, DType::F32)},
                       {"EXPONENT", codegen::number(std::numbers::log2e_v<float>, DType::F32)}});
}

std::string GradientsText::begin(std::string_view name, const std::vector<codegen::simt::Parameter>& parameters) const {
  std::string all;
  for (const auto& [n, v] :
       std::initializer_list<std::pair<const char*, int>>{{"ROWS", tile_.rows},
                                                          {"OTHERS", tile_.others},
                                                          {"THREADS", tile_.threads()},
                                                          {"LANES", tile_.lanes},
                                                          {"ROW_STEP", tile_.row_step()},
                                                          {"MY_ROWS", tile_.my_rows()},
                                                          {"MY_OTHERS", tile_.my_others()},
                                                          {"DEPTH", a_.depth},
                                                          {"WIDTH", a_.width},
                                                          {"CHUNK", tile_.chunk},
                                                          {"WEIGHTS", tile_.weights()},
                                                          {"WEIGHTS_PITCH", tile_.weights_pitch()}})
    all += (all.empty() ? "" : ", ") + std::string(n) + " = " + to_string(v);
  return std::string(tile_.cores ? codegen::simt::tensor_primitives() : "") + "\n" +
         codegen::simt::begin_kernel(language_, name, tile_.threads(), parameters, symbolic_.size(), "long",
                                     tile_.resident) +
         "  enum { " + all + " };\n";
}

// Returns how many elements are read at once: 16 bytes if rows begin at multiples of 16 bytes.
int wide(int head) { return head % 4 == 0 ? 4 : 1; }

std::string GradientsText::stage(const Matrix& m, int count, const std::string& d0, int columns, int pitch,
                                 const std::string& at) const {
  const int v = wide(m.head);
  const std::string from = m.rows + " + (" + m.begin + " + r) * " + to_string(m.head) + " + " + d0 + " + c";
  const std::string indent = "              ", to = "chunk[$AT + r * $PITCH + c";
  std::string read = indent + "LC_LOADV(float, 4, w, " + from + ");\n";
  if (v == 1)
    read = indent + to + "] = " + (tile_.cores ? "lc_f32_to_bf16(*(" + from + "))" : "*(" + from + ")") + ";\n";
  else if (tile_.cores)
    read += indent + "*(uint2*)&" + to + "] = make_uint2(lc_pack_bf16(LC_AT(w, 0), LC_AT(w, 1)), " +
            "lc_pack_bf16(LC_AT(w, 2), LC_AT(w, 3)));\n";
  else read += indent + "LC_UNROLL\n" + indent + "for (int l = 0; l < 4; ++l) " + to + " + l] = LC_AT(w, l);\n";
  // more in flight would spill sums
  const std::string under_way = tile_.cores ? "#pragma unroll " + to_string(tile_.others < 64 ? 2 : 4) + "\n" : "";
  return filled(gradients_pieces::kGradientsStage, {{"READ", read},
                                                    {"UNROLL", under_way},
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
  const int step = tile_.step(own.head), pitch = tile_.pitch(own.head);
  const std::string d0 = tile_.cores ? "0" : "d0";
  return filled(tile_.cores ? gradients_pieces::kCoreProducts : gradients_pieces::kFmaProducts,
                {{"STAGE_OWN", stage(own, tile_.rows, d0, step, pitch, "0")},
                 {"STAGE_OTHERS", stage(others, tile_.others, d0, step, pitch, "ROWS * " + to_string(pitch))},
                 {"SUM", sum},
                 {"STEP", to_string(step)},
                 {"PITCH", to_string(pitch)},
                 {"N", to_string(own.head)}});
}

// `from`: the weights, if they stay in registers.
std::string GradientsText::accumulate(const std::string& sum, const std::string& from, const Matrix& others) const {
  const int my = tile_.columns(others.head), columns = my * tile_.lanes;
  Matrix at_once = others;
  if (tile_.cores) {
    at_once.begin = "o0";
    const int pitch = columns + kCorePad;
    return filled(gradients_pieces::kCoreAccumulate, {{"STAGE", stage(at_once, tile_.others, "0", columns, pitch, "0")},
                                                      {"SUM", sum},
                                                      {"FROM", from},
                                                      {"PITCH", to_string(pitch)},
                                                      {"MY", to_string(my)}});
  }
  const int span = tile_.span(others.head);
  at_once.begin = "o0 + k0";
  return filled(gradients_pieces::kFmaAccumulate, {{"STAGE", stage(at_once, span, "0", columns, columns, "0")},
                                                   {"SUM", sum},
                                                   {"SPAN", to_string(span)},
                                                   {"SIDE", to_string(tile_.side(others.head))},
                                                   {"MY", to_string(my)},
                                                   {"END", others.end}});
}

std::string GradientsText::zeros(const std::string& sum, int head) const {
  return filled(gradients_pieces::kZeros, {{"SUM", sum}, {"MY", to_string(tile_.columns(head))}});
}

std::string GradientsText::results(const std::string& sum, const std::string& out, const std::string& end,
                                   int head) const {
  const int my = tile_.columns(head), side = tile_.side(head), v = head % side == 0 ? side : 1;
  const std::string to = out + " + row * " + to_string(head) + " + column", n = to_string(v);
  const std::string write =
      v == 1 ? "        *(" + to + ") = " + sum + "[i][c];\n"
             : "        LC_VECTOR(float, " + n + ", w);\n        LC_UNROLL\n        for (int l = 0; l < " + n +
                   "; ++l) LC_AT(w, l) = " + sum + "[i][c + l];\n        LC_STOREV(float, " + n + ", " + to + ", w);\n";
  return filled(gradients_pieces::kGradientResults, {{"WRITE", write},
                                                     {"MY", to_string(my)},
                                                     {"SIDE", to_string(side)},
                                                     {"END", end},
                                                     {"N", to_string(head)},
                                                     {"V", n}});
}

std::string GradientsText::shared() const {
  return filled(gradients_pieces::kShared,
                {{"TYPE", tile_.cores ? "u16" : "float"},
                 {"MINE", tile_.cores ? "t / 32 * 16 + t % 32 / 4" : "t / LANES * MY_ROWS"}});
}

std::string GradientsText::kept(const std::string& from) const {
  return tile_.cores ? from + "[i][j]" : "weights[(mine + i) * WEIGHTS_PITCH + lane + j * LANES]";
}
std::string GradientsText::keep(const std::string& from) const {
  return tile_.cores ? "" : filled(gradients_pieces::kKeep, {{"FROM", from}});
}

std::string GradientsText::score(bool of_queries) const {
  const std::string query = of_queries ? "own" : "other", key = of_queries ? "other" : "own";
  std::string also = a_.causal ? " && " + key + " <= " + query : "";
  if (const std::size_t n = a_.mask.size())
    also += " && mask[mask_head + " + query + " * " + size(a_.mask[n - 2].stride) + " + " + key + " * " +
            size(a_.mask[n - 1].stride) + "] != 0";
  const std::string ends[] = {size(a_.queries), size(a_.keys)};
  return filled(gradients_pieces::kScore, {{"OWN_END", ends[of_queries ? 0 : 1]},
                                           {"OTHER_END", ends[of_queries ? 1 : 0]},
                                           {"OTHER", tile_.cores ? "j / 2 * 8 + lane * 2 + j % 2" : "lane + j * LANES"},
                                           {"AND", also},
                                           {"SCALE", codegen::number(a_.scale, DType::F32)}});
}

std::string GradientsText::locate_mask() const {
  std::string rest = "head", sum = "0";
  for (std::size_t i = a_.mask.size(); i-- > 2;) {
    const AttentionGradients::MaskAxis& axis = a_.mask[i - 2];
    if (!(axis.stride == Dim(0))) sum += " + " + rest + " % " + size(axis.extent) + " * " + size(axis.stride);
    rest = "(" + rest + " / " + size(axis.extent) + ")";
  }
  return a_.mask.empty() ? "" : "  const long mask_head = " + sum + ";\n";
}

// Adds 0 to a sum, or NaN if an element of a tile is not finite.
std::string GradientsText::odd_numbers(const std::string& name, int head) const {
  const std::string n = to_string(head), from = name + " + (head * " + size(a_.keys) + " + first) * " + n + " + u";
  if (wide(head) == 1) return "  for (long u = t; u < rows * " + n + "; u += THREADS) sum += *(" + from + ") * 0.0f;\n";
  return "  for (long u = t * 4; u < rows * " + n + "; u += THREADS * 4) {\n    LC_LOADV(float, 4, w, " + from +
         ");\n    LC_UNROLL\n    for (int l = 0; l < 4; ++l) sum += LC_AT(w, l) * 0.0f;\n  }\n";
}

std::vector<codegen::simt::Parameter> GradientsText::operands() const {
  std::vector<codegen::simt::Parameter> parameters = {{"float", "q"}, {"float", "k"}, {"float", "v"}, {"float", "g"}};
  if (!a_.mask.empty()) parameters.push_back({"u8", "mask"});
  return parameters;
}

std::string GradientsText::finite(std::string_view name) const {
  return begin(name, {{"float", "k"}, {"float", "v"}, {"float", "scratch", true}}) +
         filled(ours(gradients_pieces::kFiniteTile),
                {{"SUM_K", odd_numbers("k", a_.depth)},
                 {"SUM_V", odd_numbers("v", a_.width)},
                 {"VOTE", filled(gradients_pieces::kVoteOfBlock, {{"SAYS", "sum != 0.0f"}})}}) +
         "}\n";
}

std::string GradientsText::queries(std::string_view name) const {
  std::vector<codegen::simt::Parameter> parameters = operands();
  parameters.push_back({"float", "dq", true}), parameters.push_back({"float", "scratch", true});
  const std::string queries = size(a_.queries), keys = size(a_.keys);
  const Matrix q{"q_head", "first", queries, a_.depth}, k{"k_head", "o0", keys, a_.depth};
  const Matrix g{"g_head", "first", queries, a_.width}, v{"v_head", "o0", keys, a_.width};
  const std::string scores = products("s", q, k), slopes = products("slope", g, v);
  const auto walk = [&](std::string_view text) {
    return filled(ours(text), {{"SCORES", scores},
                               {"SLOPES", slopes},
                               {"SCORE", score(true)},
                               {"ADD", accumulate("sum", "slope", k)},
                               {"SLOPE", kept("slope")}});
  };
  std::string out =
      begin(name, parameters) + shared() + filled(ours(gradients_pieces::kQueriesBegin), {{"MASK", locate_mask()}});
  if (a_.causal)
    out += filled(ours(gradients_pieces::kQueriesCausal),
                  {{"VOTE", filled(gradients_pieces::kVoteOfBlock, {{"SAYS", "hidden != 0.0f"}})}});
  out += walk(gradients_pieces::kStatistics) + ours(gradients_pieces::kGradientsJoin) + zeros("sum", a_.depth) +
         walk(gradients_pieces::kSlopesOfQueries);
  return out + results("sum", "dq + head * " + queries + " * DEPTH", queries, a_.depth) + "}\n";
}

std::string GradientsText::keys(std::string_view name) const {
  std::vector<codegen::simt::Parameter> parameters = operands();
  parameters.push_back({"float", "scratch"}), parameters.push_back({"float", "dk", true}),
      parameters.push_back({"float", "dv", true});
  const std::string queries = size(a_.queries), keys = size(a_.keys);
  const Matrix q{"q_head", "o0", queries, a_.depth}, k{"k_head", "first", keys, a_.depth};
  const Matrix g{"g_head", "o0", queries, a_.width}, v{"v_head", "first", keys, a_.width};
  std::string out = begin(name, parameters) + shared() + ours(gradients_pieces::kKeysBegin);
  // With PoCL 3.1 dK was wrong if a vote decides where the walk begins, so OpenCL skips nothing.
  if (a_.causal && language_ != codegen::simt::Language::OpenCl)
    out += filled(ours(gradients_pieces::kKeysCausal),
                  {{"VOTE", filled(gradients_pieces::kVoteOfBlock, {{"SAYS", "hidden != 0.0f"}})}});
  out += zeros("of_keys", a_.depth) + zeros("of_values", a_.width);
  out += filled(ours(gradients_pieces::kSlopesOfKeys), {{"MASK", locate_mask()},
                                                        {"SCORES", products("s", k, q)},
                                                        {"SLOPES", products("slope", v, g)},
                                                        {"SCORE", score(false)},
                                                        {"KEEP_SHARES", keep("s")},
                                                        {"KEEP_SLOPES", keep("slope")},
                                                        {"ADD_VALUES", accumulate("of_values", "s", g)},
                                                        {"ADD_KEYS", accumulate("of_keys", "slope", q)}});
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

int GradientsTile::step(int head) const {
  if (cores) return round_up(head, 16);
  const int steps = (head + kStep - 1) / kStep;
  return round_up((head + steps - 1) / steps, 4);
}
int GradientsTile::pitch(int head) const {
  if (cores) return step(head) + kCorePad;
  return step(head) % 8 == 0 ? step(head) + 4 : step(head);
}
int GradientsTile::columns(int head) const {
  if (cores) return round_up(head, 16) / lanes;
  const int n = (head + lanes - 1) / lanes;
  return n > 2 ? round_up(n, 4) : n;
}
int GradientsTile::side(int head) const {
  const int n = std::min(columns(head), 4);
  return cores ? 2 : n;
}
int GradientsTile::span(int head) const {
  int n = others;
  while (n > 4 && n * columns(head) * lanes > chunk) n /= 2;
  return n;
}
// The lanes' statistics use this memory, too.
int GradientsTile::weights() const { return rows * std::max(cores ? 0 : weights_pitch(), 3 * lanes); }
std::int64_t GradientsTile::shared() const { return chunk * (cores ? 2 : 4) + (weights() + 3 * rows) * 4 + 64; }

namespace {

// A thread has two rows of each sum. Sums of 128 columns fit its registers, with scores and slopes of 32 others.
std::optional<GradientsTile> tile_of_cores(const AttentionGradients& a, const AttentionTarget& target) {
  const int most = round_up(std::max(a.depth, a.width), 16);
  if (most > 128) return std::nullopt;
  GradientsTile t{64, most > 64 ? 32 : 64, 32, 4, true};
  t.chunk = (t.rows + t.others) * (most + kCorePad);
  return t.shared() <= std::min(target.shared, kStaticShared) ? std::optional(t) : std::nullopt;
}

}  // namespace

std::optional<GradientsTile> gradients_tile(const AttentionGradients& a, const AttentionTarget& target) {
  if (target.cores)
    if (const auto t = tile_of_cores(a, target)) return t;
  struct Shape {
    int rows, others, teams;
  };
  for (const Shape s : {Shape{64, 64, 16}, {32, 64, 16}, {32, 32, 8}, {16, 32, 8}, {8, 16, 4}}) {
    GradientsTile t{s.rows, s.others, s.teams, 16, false};
    const int columns = std::max(t.columns(a.depth), t.columns(a.width));
    t.chunk = std::max((s.rows + s.others) * std::max(t.pitch(a.depth), t.pitch(a.width)), 4 * columns * t.lanes);
    const int sums = 2 * columns * t.my_rows();  // sums of dK and dV in a thread's registers
    if (sums > kSums && t.my_rows() > 2) continue;
    if (sums <= kSums) t.resident = 2;
    if (t.shared() > std::min(target.shared, kStaticShared) || t.threads() > target.threads ||
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

std::string finite_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                        std::string_view name) {
  return GradientsText(a, tile, l).finite(name);
}
std::string queries_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                         std::string_view name) {
  return GradientsText(a, tile, l).queries(name);
}
std::string keys_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                      std::string_view name) {
  return GradientsText(a, tile, l).keys(name);
}

}  // namespace lc::backends::gpu
