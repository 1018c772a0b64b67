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
#include "tests/ops_cases.h"

using namespace lc;

namespace {

DType type_named(const std::string& s) {
  for (const DTypeInfo& d : kDTypes)
    if (d.name == s) return d.dtype;
  throw std::runtime_error("no type " + s);
}

struct Golden {
  std::string name;
  std::vector<Value> in, out;
};

Value parse_value(std::istringstream& s) {
  std::string type, word;
  s >> type;
  std::vector<std::int64_t> shape;
  for (s >> word;; s >> word) {
    if (word.front() == '[') word.erase(0, 1);
    const bool last = !word.empty() && word.back() == ']';
    if (last) word.pop_back();
    if (!word.empty()) shape.push_back(std::stoll(word));
    if (last) break;
  }
  Value v = make_value(type_named(type), shape);
  for (std::size_t k = 0; k < v.size(); ++k) {
    s >> word;
    if (v.dtype == DType::F64) v.f[k] = std::strtod(word.c_str(), nullptr);
    else if (is_float(v.dtype)) v.f[k] = std::strtof(word.c_str(), nullptr);
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

std::vector<Tensor> build(const std::string& name, Graph& g, cases::T t, std::set<std::string>& used) {
  if (name.starts_with("arange")) return {name == "arange" ? arange(g, 6) : arange(g, 4, type_named(name.substr(7)))};
  if (name == "linspace") return {linspace(g, -1, 2, 7)};
  if (name == "linspace one") return {linspace(g, 3, 9, 1)};
  if (name == "linspace down") return {linspace(g, 5, -5, 11)};
  if (name.starts_with("matmul ")) return {matmul(t[0], t[1])};
  if (name.starts_with("einsum ")) return {einsum(name.substr(7), t)};
  if (name.starts_with("promote ")) return {t[0] + t[1]};
  if (name.starts_with("number int ")) return {t[0] + 2};
  if (name.starts_with("number float ")) return {t[0] * 2.5};
  if (name.starts_with("number div ")) return {t[0] / 2};
  if (name.starts_with("cast f") || name.starts_with("cast b") || name.starts_with("cast i") || name.starts_with("cast u")) {
    std::istringstream words(name);
    std::string cast, from, type;
    words >> cast >> from >> type;
    return {to(t[0], type_named(type))};
  }
  for (std::string key = name;; key.resize(key.rfind(' '))) {
    for (const cases::Case& c : cases::kCases)
      if (key == c.name) {
        used.insert(key);
        return c.build(t);
      }
    static const std::set<std::string> suffixes{"f64", "f32", "i64", "i32", "u8", "bool", "bf16", "f16", "odd"};
    const auto space = key.rfind(' ');
    if (space == key.npos || !suffixes.contains(key.substr(space + 1))) throw std::runtime_error("no builder");
  }
}

// Half-width results carry the rounding of each step; f32 and f64 that of their functions.
double tolerance(DType t, double want) {
  switch (t) {
    case DType::F64: return 1e-13 + 1e-12 * std::abs(want);
    case DType::F32: return 1e-6 + 1e-5 * std::abs(want);
    case DType::F16: return 1e-3 * (1 + std::abs(want));
    case DType::BF16: return 2e-2 * (1 + std::abs(want));
    default: return 0;
  }
}

// `signs`: zeros must have the right sign, where IEEE 754 says which that is. (PyTorch's maximum and
// what is built on it follow the processor; ours is IEEE 754-2019's.)
void same(const Value& want, const Value& got, const std::string& where, bool signs) {
  ASSERT_EQ(want.shape, got.shape) << where;
  ASSERT_EQ(want.dtype, got.dtype) << where << " is " << name(got.dtype) << ", not " << name(want.dtype);
  for (std::size_t k = 0; k < want.size(); ++k) {
    if (!is_float(want.dtype)) {
      ASSERT_EQ(want.i[k], got.i[k]) << where << "[" << k << "]";
      continue;
    }
    const double w = want.f[k], g = got.f[k];
    if (std::isnan(w) || std::isinf(w)) {
      if (std::isnan(w)) ASSERT_TRUE(std::isnan(g)) << where << "[" << k << "] is " << g << ", not NaN";
      else ASSERT_EQ(w, g) << where << "[" << k << "]";
      continue;
    }
    ASSERT_LE(std::abs(w - g), tolerance(want.dtype, w)) << where << "[" << k << "] is " << g << ", not " << w;
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

// What a back end gets wrong for now, and why; the reference interpreter still has to be right.
const std::map<std::string, std::string> kKnownFailures{
    {"conv2d no batch", "prepare_contractions slices [0, 1) of an axis of no elements"},
};

// One graph of many cases, so that the system compiler starts once for all of them.
struct Batch {
  Graph g;
  std::map<std::string, Value> inputs;
  std::vector<std::pair<const Golden*, std::size_t>> outputs;

  void add(const Golden& c, std::set<std::string>& used) {
    std::vector<Tensor> in;
    std::map<std::string, Value> values;
    for (const Value& v : c.in) {
      const std::string name = cat(c.name, " in ", in.size());
      in.push_back(g.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      values[name] = v;
    }
    const std::vector<Tensor> out = build(c.name, g, in, used);
    ASSERT_EQ(out.size(), c.out.size()) << c.name;
    for (std::size_t k = 0; k < out.size(); ++k) {
      g.output(cat(c.name, " out ", k), out[k]);
      outputs.emplace_back(&c, k);
    }
    inputs.merge(values);
  }

  void check(bool compile) {
    const Results reference = interpret(g, inputs, {}, Rounding::Storage);
    Results compiled = reference;
    if (compile) compiled = run_values(transform(g, generic() | cpu({.threads = 2})).graph, inputs, {});
    static const std::set<std::string> signed_zero{"floor", "ceil", "trunc", "round", "neg", "abs", "sqrt", "sin", "tanh", "expm1", "log1p", "erf", "add odd", "mul odd", "div odd", "fmod odd", "remainder odd", "where", "gather", "gather odd", "concat odd", "flip odd", "pad replicate odd", "tril odd", "sum all"};
    for (const auto& [c, k] : outputs) {
      const bool signs = signed_zero.contains(c->name);
      const std::string out = cat(c->name, " out ", k);
      same(c->out[k], reference.outputs.at(out), "reference: " + out, signs);
      same(c->out[k], compiled.outputs.at(out), "compiled: " + out, signs);
    }
  }
};

}  // namespace

TEST(Ops, AnswerAsPyTorchDoes) {
  const std::vector<Golden> all = goldens();
  EXPECT_GE(all.size(), 700u);
  std::set<std::string> used;
  const auto add = [&](Batch& b, const Golden& c) {
    try {
      b.add(c, used);
    } catch (const std::exception& e) {
      ADD_FAILURE() << c.name << ": " << e.what();
    }
  };
  Batch known;
  for (std::size_t at = 0; at < all.size();) {
    Batch b;
    for (const std::size_t end = std::min(all.size(), at + 80); at < end; ++at)
      add(kKnownFailures.contains(all[at].name) ? known : b, all[at]);
    b.check(true);
  }
  known.check(false);
  for (const cases::Case& c : cases::kCases) EXPECT_TRUE(used.contains(c.name)) << "no golden case runs '" << c.name << "'";
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
