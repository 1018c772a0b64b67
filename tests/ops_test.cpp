// Every operation against PyTorch's answers (tests/goldens/ops.txt, made by tools/make_goldens.py),
// in the reference interpreter and compiled for the CPU.
#include "lightcone/ops/ops.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/passes.h"
#include "lightcone/passes/verify.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

struct Golden {
  std::string name;
  std::vector<Value> in, out;
};

Value parse_value(std::istringstream& s) {
  std::string type, word;
  s >> type;
  const std::map<std::string, DType> types{{"f32", DType::F32}, {"f64", DType::F64}, {"i64", DType::I64}, {"i32", DType::I32}, {"bool", DType::Bool}, {"u8", DType::U8}};
  std::vector<std::int64_t> shape;
  for (s >> word;; s >> word) {
    if (word.front() == '[') word.erase(0, 1);
    const bool last = !word.empty() && word.back() == ']';
    if (last) word.pop_back();
    if (!word.empty()) shape.push_back(std::stoll(word));
    if (last) break;
  }
  Value v = make_value(types.at(type), shape);
  for (std::size_t k = 0; k < v.size(); ++k) {
    s >> word;
    if (is_float(v.dtype)) v.f[k] = std::strtod(word.c_str(), nullptr);
    else v.i[k] = std::stoll(word);
  }
  return v;
}

std::vector<Golden> goldens() {
  std::ifstream f(std::string(LIGHTCONE_SOURCE) + "/tests/goldens/ops.txt");
  std::vector<Golden> all;
  for (std::string line; std::getline(f, line);) {
    std::istringstream s(line);
    std::string kind;
    s >> kind;
    if (kind == "case") all.push_back({line.substr(5), {}, {}});
    else (kind == "in" ? all.back().in : all.back().out).push_back(parse_value(s));
  }
  return all;
}

using T = const std::vector<Tensor>&;
using Build = std::function<std::vector<Tensor>(T)>;

const std::map<std::string, Build>& builders() {
#define U(f) {#f, [](T t) { return std::vector{f(t[0])}; }}
#define B(n, e) {n, [](T t) { return std::vector<Tensor>{e}; }}
  static const std::map<std::string, Build> table{
      U(abs), U(sign), U(square), U(exp), U(exp2), U(expm1), U(log), U(log2), U(log1p), U(sqrt), U(rsqrt), U(reciprocal), U(tanh), U(erf), U(floor), U(ceil),
      U(trunc), U(round), U(isnan), U(isinf), U(isfinite), U(logical_not), U(sigmoid), U(sin), U(cos), U(tan), U(logsigmoid), U(relu), U(relu6), U(selu), U(gelu),
      U(silu), U(mish), U(softplus), U(softsign), U(hardtanh), U(hardsigmoid), U(hardswish), U(leaky_relu), U(elu), U(gelu_tanh),
      B("elu alpha", elu(t[0], 0.5)), B("celu", celu(t[0], 1.5)), B("softplus beta", softplus(t[0], 2, 5)), B("neg", -t[0]),
      B("abs i64", abs(t[0])), B("sign i64", sign(t[0])), B("square i64", square(t[0])), B("exp i64", exp(t[0])), B("sqrt i64", sqrt(t[0])), B("sin i64", sin(t[0])), B("floor i64", floor(t[0])),
      B("cast to i64", to(t[0], DType::I64)), B("cast to bool", to(t[0], DType::Bool)),
      B("add", t[0] + t[1]), B("sub", t[0] - t[1]), B("mul", t[0] * t[1]), B("div", t[0] / t[1]), B("remainder", t[0] % t[1]), B("fmod", fmod(t[0], t[1])), B("pow", pow(t[0], t[1])),
      B("maximum", maximum(t[0], t[1])), B("minimum", minimum(t[0], t[1])), B("lt", t[0] < t[1]), B("gt", t[0] > t[1]), B("le", t[0] <= t[1]), B("ge", t[0] >= t[1]), B("eq", eq(t[0], t[1])), B("ne", ne(t[0], t[1])),
      B("add odd", t[0] + t[1]), B("mul odd", t[0] * t[1]), B("div odd", t[0] / t[1]), B("fmod odd", fmod(t[0], t[1])), B("pow odd", pow(t[0], t[1])), B("maximum odd", maximum(t[0], t[1])), B("minimum odd", minimum(t[0], t[1])), B("lt odd", t[0] < t[1]), B("eq odd", eq(t[0], t[1])),
      B("add i64", t[0] + t[1]), B("mul i64", t[0] * t[1]), B("div i64", t[0] / t[1]), B("remainder i64", t[0] % t[1]), B("fmod i64", fmod(t[0], t[1])), B("maximum i64", maximum(t[0], t[1])), B("lt i64", t[0] < t[1]), B("eq i64", eq(t[0], t[1])),
      B("floor_divide i64", floor_divide(t[0], t[1])), B("floor_divide", floor_divide(t[0], t[1])), B("add i64 f32", t[0] + t[1]), B("add f32 f64", t[0] + t[1]), B("add bool i32", t[0] + t[1]),
      B("add scalar", t[0] + 2.5), B("scalar sub", 2.5 - t[0]), B("scalar div", 2.5 / t[0]), B("pow scalar", pow(t[0], 3)), B("i64 div scalar", t[0] / 2.0), B("clamp", clamp(t[0], -1, 1.5)),
      B("logical_and", logical_and(t[0], t[1])), B("logical_or", logical_or(t[0], t[1])), B("logical_xor", logical_xor(t[0], t[1])), B("where", where(t[0], t[1], t[2])), B("where scalar", where(t[0], t[1], -kInf)), B("masked_fill", masked_fill(t[0], t[1], 5)),
      B("sum all", sum(t[0])), B("sum 1", sum(t[0], {1})), B("sum 0 2 keep", sum(t[0], {0, 2}, true)), B("sum bool", sum(t[0], {0})), B("sum empty", sum(t[0], {0})), B("mean -1", mean(t[0], {-1})), B("amax 1", amax(t[0], {1})), B("amin 0 1", amin(t[0], {0, 1})), B("amax nan", amax(t[0], {-1})),
      B("var 1", var(t[0], {1})), B("var 0 correction", var(t[0], {0, 2}, 0, true)), B("std all", stddev(t[0])), B("prod 1", prod(t[0], 1)), B("logsumexp", logsumexp(t[0], {-1})), B("argmax ties", argmax(t[0], 1)), B("argmin", argmin(t[0], 0)), B("any", any(t[0], {1})), B("all", all(t[0], {1})),
      B("softmax", softmax(t[0], 1)), B("log_softmax", log_softmax(t[0], -1)), B("cumsum", cumsum(t[0], 1)), B("cumprod", cumprod(t[0], -1)), B("cummax", cummax(t[0], 0)),
      B("flatten", flatten(t[0], 1)), B("concat", concat({t[0], t[1]}, 1)), B("stack", stack({t[0], t[1]}, 1)), {"split", [](T t) { return split(t[0], {1, 2}, 1); }}, {"chunk", [](T t) { return chunk(t[0], 3, 2); }},
      B("slice", slice(t[0], 1, 1, 1000)), B("slice step", slice(t[0], 2, 0, 4, 2)), B("slice negative", slice(t[0], -1, -3, -1)), B("flip", t[0].flip(2)), B("pad", pad(t[0], 2, 1, 2, PadMode::Constant, 1.5)), B("pad reflect", pad(t[0], 2, 2, 3, PadMode::Reflect)), B("pad replicate", pad(t[0], 2, 2, 3, PadMode::Replicate)),
      B("roll", roll(t[0], 3, 2)), B("roll negative", roll(t[0], -1, 1)), B("repeat", repeat(t[0], {2, 1, 3})), B("repeat_interleave", repeat_interleave(t[0], 2, 1)), B("tril", tril(t[0], 1)), B("triu", triu(t[0], -1)), B("unfold", t[0].unfold(2, 3)),
      B("gather", gather(t[0], 1, t[1])), B("index_select", index_select(t[0], 2, t[1])), B("embedding", embedding(t[0], t[1])), B("one_hot", one_hot(t[0], 4)), B("scatter", scatter(t[0], 1, t[1], t[2])), B("scatter_add", scatter_add(t[0], 0, t[1], t[2])),
      {"sort", [](T t) { const Sorted s = sort(t[0], 1); return std::vector{s.values, s.indices}; }}, {"sort descending", [](T t) { const Sorted s = sort(t[0], 1, true); return std::vector{s.values, s.indices}; }}, B("argsort", argsort(t[0], 0)), {"topk", [](T t) { const Sorted s = topk(t[0], 2, 1); return std::vector{s.values, s.indices}; }},
      B("linear", linear(t[0], t[1], t[2])), B("conv1d", conv(t[0], t[1], t[2], {.stride = {2}, .padding = {1}})), B("conv2d", conv(t[0], t[1])), B("conv2d all", conv(t[0], t[1], t[2], {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2})), B("conv2d depthwise", conv(t[0], t[1], {.padding = {1}, .groups = 3})), B("conv3d", conv(t[0], t[1], {.padding = {1}})),
      B("conv_transpose1d", conv_transpose(t[0], t[1], {.stride = {2}, .padding = {1}, .output_padding = {1}})), B("conv_transpose2d", conv_transpose(t[0], t[1], t[2], {.stride = {2}, .padding = {1}})), B("conv_transpose2d groups", conv_transpose(t[0], t[1], {.stride = {2}, .groups = 2})),
      B("max_pool2d", max_pool(t[0], {3}, {2}, {1})), B("avg_pool2d", avg_pool(t[0], {2})), B("avg_pool2d padding", avg_pool(t[0], {3}, {2}, {1})), B("max_pool1d", max_pool(t[0], {2})), B("adaptive_avg_pool2d", adaptive_avg_pool(t[0], {3, 2})), B("adaptive_max_pool2d", adaptive_max_pool(t[0], {2, 3})),
      B("interpolate nearest", interpolate(t[0], {6, 5}, Interpolation::Nearest)), B("interpolate bilinear", interpolate(t[0], {6, 5}, Interpolation::Bilinear)), B("interpolate bilinear corners", interpolate(t[0], {6, 5}, Interpolation::Bilinear, true)),
      B("layer_norm", layer_norm(t[0], 1)), B("layer_norm 2", layer_norm(t[0], 2)), B("rms_norm", rms_norm(t[0], 1e-5)), B("group_norm", group_norm(t[0], 2)), B("batch_norm", batch_norm(t[0], t[1], t[2], t[3], t[4])),
      B("attention", scaled_dot_product_attention(t[0], t[1], t[2])), B("attention causal grouped", scaled_dot_product_attention(t[0], t[1], t[2], t[3])), B("rope", rope(t[0], t[1], t[2], false)), B("rope interleaved", rope(t[0], t[1], t[2], true))};
#undef U
#undef B
  return table;
}

std::vector<Tensor> build(const std::string& name, Graph& g, T t) {
  if (name == "arange") return {arange(g, 6)};
  if (name == "linspace") return {linspace(g, -1, 2, 7)};
  if (name.starts_with("matmul ")) return {matmul(t[0], t[1])};
  if (name.starts_with("einsum ")) return {einsum(name.substr(7), t)};
  const auto it = builders().find(name);
  if (it == builders().end()) throw std::runtime_error("no builder");
  return it->second(t);
}

// `signs`: zeros must have the right sign, where IEEE 754 says which that is. (PyTorch's maximum and
// what is built on it follow the processor; ours is IEEE 754-2019's.)
void same(const Value& want, const Value& got, const std::string& where, bool signs) {
  ASSERT_EQ(want.shape, got.shape) << where;
  ASSERT_EQ(want.dtype, got.dtype) << where << " is " << name(got.dtype) << ", not " << name(want.dtype);
  for (std::size_t k = 0; k < want.size(); ++k) {
    const double w = want.at(k), g = got.at(k);
    if (std::isnan(w) || std::isinf(w)) {
      if (std::isnan(w)) ASSERT_TRUE(std::isnan(g)) << where << "[" << k << "] is " << g << ", not NaN";
      else ASSERT_EQ(w, g) << where << "[" << k << "]";
      continue;
    }
    ASSERT_LE(std::abs(w - g), 1e-6 + 2e-5 * std::abs(w)) << where << "[" << k << "] is " << g << ", not " << w;
    if (w == 0 && g == 0 && signs) {
      ASSERT_EQ(std::signbit(w), std::signbit(g)) << where << "[" << k << "]: the sign of zero";
    }
  }
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

TEST(Ops, AnswerAsPyTorchDoes) {
  std::size_t checked = 0;
  for (const Golden& c : goldens()) {
    SCOPED_TRACE(c.name);
    static const std::set<std::string> signed_zero{"floor", "ceil", "trunc", "round", "neg", "abs", "sqrt", "sin", "tanh", "add odd", "mul odd", "div odd", "fmod odd", "where", "gather", "sum all"};
    const bool signs = signed_zero.contains(c.name);
    Graph g;
    std::vector<Tensor> in;
    std::map<std::string, Value> values;
    for (const Value& v : c.in) {
      const std::string name = cat("x", in.size());
      in.push_back(g.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      values[name] = v;
    }
    try {
      const std::vector<Tensor> out = build(c.name, g, in);
      ASSERT_EQ(out.size(), c.out.size());
      for (std::size_t k = 0; k < out.size(); ++k) g.output(cat("y", k), out[k]);
      const Results reference = interpret(g, values, {}, Rounding::Storage);
      const Compiled done = transform(g, generic() | cpu({.threads = 2}));
      const Results compiled = run_values(done.graph, values, {});
      for (std::size_t k = 0; k < out.size(); ++k) {
        same(c.out[k], reference.outputs.at(cat("y", k)), "reference", signs);
        same(c.out[k], compiled.outputs.at(cat("y", k)), "compiled", signs);
      }
      ++checked;
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  EXPECT_GE(checked, 200u);
}

TEST(Ops, ErrorsSayWhatIsWrongAndWhere) {
  Graph g;
  const Tensor a = g.input("a", {32, 784}), b = g.input("b", {512, 10}), i = g.input("i", {3}, DType::I64);
  const auto says = [](const std::string& error, std::initializer_list<const char*> words) {
    for (const char* w : words) EXPECT_NE(error.find(w), std::string::npos) << "'" << error << "' lacks '" << w << "'";
  };
  says(error_of([&] { matmul(a, b); }), {"matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512", "ops_test.cpp:"});
  says(error_of([&] { a + b; }), {"[32, 784]", "[512, 10]", "ops_test.cpp:"});
  says(error_of([&] { softmax(a, 2); }), {"softmax", "axis 2", "ops_test.cpp:"});
  says(error_of([&] { concat({a, b}, 0); }), {"concat", "784", "10"});
  says(error_of([&] { a.reshape({5, 5}); }), {"reshape", "25", "25088"});
  says(error_of([&] { embedding(a, a); }), {"index", "integer", "ops_test.cpp:"});
  says(error_of([&] { gather(a, 0, i); }), {"gather"});
  says(error_of([&] { einsum("ij,jk->ik", {a, b}); }), {"einsum", "784", "512"});
  says(error_of([&] { conv(a, b); }), {"conv", "[32, 784]"});
  says(error_of([&] { Tensor() + a; }), {"tensor"});
}

// One program for every size.
TEST(Ops, SymbolicShapes) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 40);
  const Tensor x = g.input("x", {n, 6}), w = g.input("w", {6, 6});
  const Tensor h = layer_norm(gelu(matmul(x, w)), 1);
  const Tensor q = h.reshape({n, 2, 3}).permute({1, 0, 2});
  g.output("y", scaled_dot_product_attention(q, q, q).permute({1, 0, 2}).reshape({n, 6}));
  g.output("s", cumsum(softmax(h, 0), 0));
  for (std::int64_t size : {1, 2, 7, 40}) {
    const VerifyReport r = verify(g, generic() | cpu({.threads = 2}), {.trials = 2, .wild = false, .sizes = {{"n", size}}});
    EXPECT_TRUE(r.ok()) << r.str();
    EXPECT_GT(r.passes.back().elements, 0u);
  }
}

TEST(Ops, SoftmaxRowsSumToOneAndSortIsAPermutation) {
  Graph g;
  const Tensor x = g.input("x", {50, 33});
  g.output("ones", sum(softmax(x, 1), {1}));
  const Sorted s = sort(x, 1);
  g.output("back", gather(s.values, 1, argsort(s.indices, 1)));
  g.output("rising", all(slice(s.values, 1, 0, 32) <= slice(s.values, 1, 1, 33)));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> v(50 * 33);
  for (float& f : v) f = normal(random) * 20;
  const Program p = compile(g, generic() | cpu());
  Context c(p);
  c.set("x", v).run();
  for (float one : c.get("ones")) EXPECT_NEAR(one, 1, 1e-5);
  EXPECT_EQ(c.get("back"), v);
  EXPECT_EQ(c.scalar("rising"), 1);
}
