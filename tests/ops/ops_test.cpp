// Every operation gives PyTorch's answers (tests/goldens/ops.txt, wild.txt), in the reference and compiled, on NaN,
// infinities, -0 and denormals too.
//
// tools/make_goldens.py makes the goldens.
#include "lightcone/ops/ops.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "goldens.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "on_device.h"
#include "paths.h"

using namespace lc;

namespace {

// Returns the absolute tolerance. Halves are computed in f32 and rounded once, so they may be neighbours of PyTorch's
// results.
double tolerance(DType t, double want) {
  switch (t) {
    case DType::F64: return 1e-13 + 1e-12 * std::abs(want);
    case DType::F32: return 1e-6 + 1e-5 * std::abs(want);
    case DType::F16: return 0x1p-24 + 0x1p-10 * std::abs(want);
    case DType::BF16: return 1e-30 + 0x1p-7 * std::abs(want);
    default: return 0;
  }
}

// Returns how `got` differs from PyTorch's result, or "". With `signs`, zeros must have the sign that IEEE 754 defines.
// (PyTorch's maximum and functions based on it follow the processor; ours follow IEEE 754-2019.)
std::string difference(const Value& want, const Value& got, bool signs, double slack) {
  if (want.shape != got.shape) return "another shape";
  if (want.dtype != got.dtype) return str_cat(name(got.dtype), ", not ", name(want.dtype));
  for (std::size_t k = 0; k < want.size(); ++k) {
    const auto differs = [&] { return str_cat("[", k, "] is ", got.at(k), ", not ", want.at(k)); };
    if (!is_float(want.dtype)) {
      if (want.i[k] != got.i[k]) return differs();
      continue;
    }
    const double w = want.f[k], g = got.f[k];
    if (std::isnan(w) || std::isnan(g)) {
      if (!std::isnan(w) || !std::isnan(g)) return differs();
    } else if (std::isinf(w) || std::isinf(g)) {
      if (w != g) return differs();
    } else if (std::abs(w - g) > tolerance(want.dtype, w) + slack) {
      return differs();
    } else if (w == 0 && g == 0 && signs && std::signbit(w) != std::signbit(g)) {
      return str_cat("[", k, "]: the sign of zero");
    }
  }
  return {};
}

// Conversions to integers saturate, and NaN becomes 0. PyTorch's results depend on the processor, so these cases are
// not compared.
bool left_to_the_processor(const std::string& c) {
  const std::regex cast("cast (f|bf)(16|32|64) (i|u)(8|32|64) wild");
  return std::regex_match(c, cast);
}
// Returns why the result deliberately differs from PyTorch's, or "".
std::string reason_to_differ(const std::string& c) {
  if (c == "interpolate bilinear same wild" || c == "interpolate bilinear corners same wild")
    return "to the same size an image is itself; PyTorch adds 0 times its neighbours, which may be infinite";
  if (c == "gelu wild") return "gelu(inf) is inf, as it was in PyTorch 1.13; NaN since";
  if (c == "conv1d wild" || c == "conv2d depthwise wild")
    return "padding is zeros that are multiplied: 0 * inf is NaN, as in most of PyTorch's kernels; these two skip it";
  return {};
}

// One graph of many cases, so that the system compiler starts once for all of them.
struct Batch {
  Graph g;
  std::map<std::string, Value> inputs;
  std::vector<std::pair<const Golden*, std::size_t>> outputs;

  void add(const Golden& c, std::set<std::string>& used) {
    std::vector<Tensor> in;
    std::map<std::string, Value> values;
    for (const Value& v : c.in) {
      const std::string name = str_cat(c.name, " in ", in.size());
      in.push_back(g.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      values[name] = v;
    }
    const std::vector<Tensor> out = build(c.name, g, in, used);
    ASSERT_EQ(out.size(), c.out.size()) << c.name;
    for (std::size_t k = 0; k < out.size(); ++k) {
      g.output(str_cat(c.name, " out ", k), out[k]);
      outputs.emplace_back(&c, k);
    }
    inputs.merge(values);
  }

  void check() {
    const Results reference = interpret(g, inputs, {}, Rounding::Storage);
    const Results compiled = run_values(transform(g, generic() | test::device({.threads = 2})).graph, inputs, {});
    static const std::set<std::string> signed_zero{"floor",
                                                   "ceil",
                                                   "trunc",
                                                   "round",
                                                   "neg",
                                                   "abs",
                                                   "sqrt",
                                                   "sin",
                                                   "tanh",
                                                   "expm1",
                                                   "log1p",
                                                   "erf",
                                                   "add odd",
                                                   "mul odd",
                                                   "div odd",
                                                   "fmod odd",
                                                   "remainder odd",
                                                   "where",
                                                   "gather",
                                                   "gather odd",
                                                   "concat odd",
                                                   "flip odd",
                                                   "pad replicate odd",
                                                   "tril odd",
                                                   "sum all"};
    for (const auto& [c, k] : outputs) {
      const std::string out = str_cat(c->name, " out ", k), plain = c->name.substr(0, c->name.rfind(" wild"));
      const bool signs = signed_zero.contains(plain);
      // PyTorch 1.13 adds the products of small bf16 matrices in bf16
      const double slack = plain == "matmul bf16" ? 0.01 : 0;
      const std::string one = difference(c->out[k], reference.outputs.at(out), signs, slack),
                        two = difference(c->out[k], compiled.outputs.at(out), signs, slack);
      const std::string reason = reason_to_differ(c->name);
      if (left_to_the_processor(c->name)) continue;
      if (reason.empty()) {
        EXPECT_EQ(one, "") << "reference: " << out;
        EXPECT_EQ(two, "") << "compiled: " << out;
      } else {
        EXPECT_TRUE(one != "" && two != "") << out << " is PyTorch's after all; it was not because " << reason;
      }
    }
  }
};

}  // namespace

void answer_as_pytorch_does(const std::vector<Golden>& all, std::set<std::string>& used) {
  for (std::size_t at = 0; at < all.size();) {
    Batch b;
    for (const std::size_t end = std::min(all.size(), at + 80); at < end; ++at) {
      try {
        b.add(all[at], used);
      } catch (const std::exception& e) {
        ADD_FAILURE() << all[at].name << ": " << e.what();
      }
    }
    b.check();
  }
}

TEST(Ops, AnswerAsPyTorchDoes) {
  const std::vector<Golden> all = goldens();
  EXPECT_GE(all.size(), 700u);
  std::set<std::string> used;
  answer_as_pytorch_does(all, used);
  for (const cases::Case& c : cases::kCases)
    EXPECT_TRUE(used.contains(c.name)) << "no golden case runs '" << c.name << "'";
}

// The same cases with NaN, infinities, -0 and denormals among the inputs. A definition that multiplies a mask, padding
// or a zero by data gives NaN where PyTorch does not.
TEST(Ops, AnswerAsPyTorchDoesOnNaNAndInfinity) {
  const std::vector<Golden> all = goldens("wild.txt");
  EXPECT_GE(all.size(), 600u);
  std::set<std::string> used;
  answer_as_pytorch_does(all, used);
}

TEST(Ops, EveryFunctionHasAnAnswerToMeet) {
  const auto text = [](const char* path) {
    std::ifstream f(std::string(paths::kSource) + path);
    return std::string(std::istreambuf_iterator<char>(f), {});
  };
  const std::string header = text("/lightcone/ops/ops.h") + text("/lightcone/ops/shape.h") +
                             text("/lightcone/ops/creation.h"),
                    cases = text("/tests/ops/ops_cases.h") + text("/tests/ops/goldens.h") +
                            text("/tests/ops/names_test.cpp");
  const std::regex declaration(
      "\\n(?:inline )?(?:Tensor|Sorted|Extreme|std::vector<Tensor>|std::pair<Tensor, Tensor>) (\\w+)\\(");
  std::size_t functions = 0;
  for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it, ++functions) {
    const std::string f = (*it)[1];
    if (f == "split_by" || f == "split_in") continue;  // used by split() and tensor_split()
    EXPECT_TRUE(std::regex_search(cases, std::regex("[^\\w\"]" + f + "[()]"))) << f << " has no case";
  }
  EXPECT_GT(functions, 150u);
}

// The same graphs on random numbers with NaN, infinities and zeros of both signs: every pass and the CPU agree with the
// reference in f64.
TEST(Ops, EveryPassAgreesOnWildNumbers) {
  const std::vector<Golden> all = goldens();
  std::set<std::string> used;
  std::size_t elements = 0;
  for (std::size_t at = 0; at < all.size();) {
    Batch b;
    for (const std::size_t end = std::min(all.size(), at + 100); at < end; ++at) b.add(all[at], used);
    const VerifyReport r = verify(b.g, generic() | test::device({.threads = 2}), {.trials = 3, .seed = 7});
    EXPECT_TRUE(r.ok()) << r.str();
    elements += r.passes.back().elements;
  }
  EXPECT_GT(elements, 15000u);
}

// One program for all sizes.
TEST(Ops, SymbolicShapes) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 40);
  const Tensor x = g.input("x", {n, 6}), w = g.input("w", {6, 6});
  const Tensor h = layer_norm(gelu(matmul(x, w)), {w.extent(-1)});
  const Tensor q = h.reshape({n, 2, 3}).permute({1, 0, 2});
  g.output("y", scaled_dot_product_attention(q, q, q).permute({1, 0, 2}).reshape({n, 6}));
  g.output("s", cumsum(softmax(h, 0), 0));
  for (std::int64_t size : {1, 2, 7, 40}) {
    const VerifyReport r =
        verify(g, generic() | test::device({.threads = 2}), {.trials = 2, .wild = false, .sizes = {{"n", size}}});
    EXPECT_TRUE(r.ok()) << r.str();
    EXPECT_GT(r.passes.back().elements, 0u);
  }
}

namespace {
// A graph with nearly every operation, on inputs of one floating type.
Graph everything(DType type) {
  Graph g;
  const Tensor x = g.input("x", {4, 6, 10}, type), w = g.input("w", {6, 10}, type),
               image = g.input("image", {2, 4, 7, 8}, type), filter = g.input("filter", {6, 2, 3, 3}, type);
  auto results = [&, k = 0](const Tensor& t) mutable {
    EXPECT_EQ(t.dtype(), type) << "result " << k;
    g.output(str_cat("y", k++), t);
  };
  const auto exact_gelu = [](Operand a) { return gelu(a); };
  for (Tensor (*const f)(Operand) : std::initializer_list<Tensor (*)(Operand)>{
           exp, log, tanh, erf, sin, cos, sqrt, rsqrt, exact_gelu, silu, mish, floor, abs, sigmoid, expm1, log1p, atan})
    results(f(x));
  for (const Tensor& t : {x + w, x * w, x / w, x % w, pow(x, 3), maximum(x, w), where(x < w, x, w), x * 2.5,
                          clamp(x, -1, 1), masked_fill(x, w < 0, -kInf)})
    results(t);
  for (const Tensor& t : {sum(x, {1}), mean(x), amax(x, {0, 2}), amin(x, {1}), var(x, {1}), logsumexp(x, {2}), norm(x),
                          prod(x, 0), cumsum(x, 2), cummax(x, 1).values, softmax(x, 1), log_softmax(x, 2)})
    results(t);
  for (const Tensor& t : {concat({x, x}, 1), pad(x, 1, 2, 2, PadMode::Reflect), roll(x, 2, 1), tril(x),
                          gather(x, 1, to(clamp(x, 0, 5), DType::I64)), sort(x, 1).values, topk(x, 3, 2).values})
    results(t);
  for (const Tensor& t :
       {matmul(x, w.transpose(0, 1)), einsum("bij,kj->ik", {x, w}), conv(image, filter, {.padding = {1}, .groups = 2}),
        conv_transpose(image, filter.slice(0, 0, 4), {.stride = {2}}), max_pool(image, {3}, {2}, {1}),
        avg_pool(image, {2}), adaptive_avg_pool(image, {3}), interpolate(image, {5, 11}, Interpolation::Bilinear)})
    results(t);
  for (const Tensor& t : {layer_norm(x, {x.extent(-1)}), rms_norm(x, {x.extent(-1)}), group_norm(image, 2),
                          normalize(x), scaled_dot_product_attention(x, x, x, {.is_causal = true})})
    results(t);
  for (const auto f :
       {log10, tan, asinh, sinh, cosh, logsigmoid, selu, gelu_tanh, softsign, hardsigmoid, hardswish, tanhshrink, erfc})
    results(f(x));
  const Tensor small = clamp(x, -0.75, 0.75), bias = g.input("bias", {6}, type),
               channels = g.input("channels", {4}, type), turns = g.input("turns", {6, 5}, type),
               v = g.input("v", {10}, type);
  for (const Tensor& t :
       {asin(small), acos(small), atanh(small), logit(clamp(x, 0.125, 0.875)), acosh(clamp(x, 1.25, 9)), softmin(x, 1),
        softplus(x), celu(x, 0.7), elu(x), glu(x), stddev(x, {1}), logcumsumexp(x, 1), cumprod(x, 2)})
    results(t);
  for (const Tensor& t :
       {hypot(x, w), logaddexp(x, w), xlogy(abs(x), abs(w)), lerp(x, w, 0.3), atan2(x, w), linear(x, w, bias),
        conv(image, filter, bias, {.groups = 2}), layer_norm(x, {x.extent(-1)}, v, v), rms_norm(x, v.shape(), v),
        group_norm(image, 2, channels, channels), instance_norm(image),
        batch_norm(image, channels, abs(channels), channels, channels), cosine_similarity(x, w),
        rope(x, turns, turns, false)})
    results(t);
  return g;
}
}  // namespace

TEST(Ops, EveryFloatingType) {
  for (const DType type : {DType::F16, DType::BF16, DType::F64}) {
    const Graph g = everything(type);
    const VerifyReport r = verify(g, generic() | test::device({.threads = 2}), {.trials = 2, .wild = false});
    EXPECT_TRUE(r.ok()) << name(type) << "\n" << r.str();
    EXPECT_GT(r.passes.back().elements, 1000u) << name(type);
  }
}

// However an operation is composed, a half result is the exact one rounded once.
TEST(Ops, HalvesAreRoundedOnce) {
  const Graph exact = everything(DType::F64);
  for (const DType type : {DType::F16, DType::BF16}) {
    const Graph g = everything(type);
    std::map<std::string, Value> inputs = random_inputs(g, {}, 5, false);
    const Results got = interpret(g, inputs, {});
    for (auto& [name, v] : inputs) v.dtype = DType::F64;
    const Results want = interpret(exact, inputs, {});
    const double half_step = type == DType::F16 ? 0x1p-11 : 0x1p-8, least = 5e-7;  // least: the error of erf in f32
    for (const auto& [name, v] : want.outputs)
      for (std::size_t k = 0; k < v.size(); ++k) {
        const double w = v.at(k), h = got.outputs.at(name).at(k);
        ASSERT_EQ(std::isnan(w), std::isnan(h)) << name << "[" << k << "]";
        if (std::isnan(w) || h == w || (type == DType::F16 && std::abs(w) > 65504)) continue;
        ASSERT_LE(std::abs(h - w), std::abs(w) * half_step * 1.002 + least)
            << name << "[" << k << "] in " << lc::name(type) << " is " << h << ", not " << w;
      }
  }
}

// Empty tensors, with sizes known at build time or bound at run time. (The mean of no elements is 0 * inf, which the
// reference leaves undecided, so ok() would be too strict.)
TEST(Ops, EmptyTensors) {
  for (const bool symbolic : {false, true}) {
    const Dim n = symbolic ? Dim::symbol("n", 0, 4) : Dim(0);
    const auto check = [&](const char* what, const std::function<Tensor(Tensor, Tensor, Tensor)>& build) {
      Graph g;
      const Tensor x = g.input("x", {n, 6}), image = g.input("image", {n, 4, 7, 8}), w = g.input("w", {6, 6});
      try {
        g.output("y", build(x, image, w));
        const VerifyReport r = verify(g, generic() | test::device({.threads = 2}),
                                      {.trials = 1, .wild = false, .sizes = {{"n", 0}}, .shrink = false});
        EXPECT_FALSE(r.fault) << what << (symbolic ? " (symbolic)\n" : "\n") << r.str();
      } catch (const Error& e) {
        ADD_FAILURE() << what << (symbolic ? " (symbolic): " : ": ") << e.what();
      }
    };
#define EMPTY(e)                                   \
  check(#e, [](Tensor x, Tensor image, Tensor w) { \
    (void)x, (void)image, (void)w;                 \
    return e;                                      \
  })
    EMPTY(gelu(x));
    EMPTY(x + w.slice(0, 0, 1));
    EMPTY(matmul(x, w));
    EMPTY(matmul(x.transpose(0, 1), x));
    EMPTY(linear(x, w));
    EMPTY(einsum("ni,ij,nj->ij", {x, w, x}));
    EMPTY(sum(x));
    EMPTY(sum(x, {0}));
    EMPTY(mean(x, {0}));
    EMPTY(any(x, {0}));
    EMPTY(prod(x, 0));
    EMPTY(argmax(x, 1));
    EMPTY(var(x, {1}));
    EMPTY(logsumexp(x, {1}));
    EMPTY(softmax(x, 0));
    EMPTY(softmax(x, 1));
    EMPTY(cumsum(x, 0));
    EMPTY(cumprod(x, 1));
    EMPTY(concat({x, w, x}, 0));
    EMPTY(concat({x, x}, 1));
    EMPTY(pad(x, 0, 1, 2, PadMode::Constant, 3));
    EMPTY(pad(x, 1, 2, 2, PadMode::Reflect));
    EMPTY(x.flip(0));
    EMPTY(tril(x));
    EMPTY(repeat(x, {2, 3}));
    EMPTY(sort(x, 0).values);
    EMPTY(sort(x, 1).values);
    EMPTY(topk(x, 2, 1).values);
    EMPTY(gather(x, 1, argsort(x, 1)));
    EMPTY(index_select(w, 0, to(x.slice(1, 0, 1).squeeze(1), DType::I64)));
    EMPTY(index_add(w, 0, to(x.slice(1, 0, 1).squeeze(1), DType::I64), x));
    EMPTY(one_hot(to(x, DType::I64), 3));
    EMPTY(max_pool(image, {2}));
    EMPTY(avg_pool(image, {3}, {2}, {1}, false, false));
    EMPTY(adaptive_avg_pool(image, {3}));
    EMPTY(interpolate(image, {5}, Interpolation::Bilinear));
    EMPTY(conv(image, full(image.graph(), {2, 4, 3, 3}, 1)));
    EMPTY(conv_transpose(image, full(image.graph(), {4, 2, 3, 3}, 1), {.stride = {2}}));
    EMPTY(layer_norm(x, {x.extent(-1)}));
    EMPTY(group_norm(image, 2));
    EMPTY(instance_norm(image));
    EMPTY(scaled_dot_product_attention(x, x, x));
    EMPTY(scaled_dot_product_attention(w, x, x));
    EMPTY(scaled_dot_product_attention(image, image, image, {.is_causal = true}));
#undef EMPTY
  }
}

// The same for all other operations that support symbolic sizes.
TEST(Ops, SymbolicShapesOfTheRest) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 20), m = Dim::symbol("m", 1, 9);
  const Tensor x = g.input("x", {n, 6}), y = g.input("y", {m, 6}), image = g.input("image", {2, 4, n + 3, m + 2}),
               filter = g.input("filter", {6, 2, 3, 2});
  auto out = [&, k = 0](const Tensor& t) mutable { g.output(str_cat("y", k++), t); };
  out(rms_norm(x, {x.extent(-1)}, {}, 1e-5));
  out(var(x, {0}, 0));
  out(mean(x, {0}));
  out(logsumexp(x, {0, 1}));
  out(argmax(x, 0));
  out(cumprod(x, 0));
  out(cummax(x, 0).values);
  out(prod(x, 0));
  out(concat({x, y, x}, 0));
  out(pad(x, 0, 2, 3, PadMode::Replicate));
  out(pad(x, 0, 1, 1, PadMode::Constant, 3));
  out(roll(x, 3, 0));
  out(tril(einsum("ij,kj->ik", {x, y}), 1));
  out(outer(x.slice(1, 0, 1).squeeze(1), y.slice(1, 0, 1).squeeze(1)));
  out(flip(x, {0}));
  out(diff(x, 1, 0));
  out(repeat(x, {2, 1}));
  out(repeat_interleave(x, 2, 0));
  out(conv(image, filter, {.stride = {2, 1}, .padding = {1}, .groups = 2}));
  out(conv_transpose(image, filter.reshape({4, 3, 3, 2}), {.stride = {2}}));
  out(max_pool(image, {3, 2}, {2, 1}, {1}));
  out(avg_pool(image, {2}));
  out(avg_pool(image, {3, 2}, {1}, {1}, false, false));
  out(group_norm(image, 2));
  out(instance_norm(image));
  out(scaled_dot_product_attention(x, y, y, {.is_causal = true}));
  out(normalize(x, 2, 0));
  out(arange(g, n * m, DType::F32));
  out(eye(g, n));
  for (const auto& [a, b] : {std::pair{1, 1}, std::pair{2, 9}, std::pair{20, 1}, std::pair{13, 6}}) {
    const VerifyReport r = verify(g, generic() | test::device({.threads = 2}),
                                  {.trials = 1, .wild = false, .sizes = {{"n", a}, {"m", b}}});
    EXPECT_TRUE(r.ok()) << "n = " << a << ", m = " << b << "\n" << r.str();
    EXPECT_GT(r.passes.back().elements, 0u);
  }
}

namespace {

// Compiles the graph and runs it on normally distributed numbers.
Context run(const Graph& g, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Context c(compile(g, generic() | test::device()));
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::Input) continue;
    std::vector<float> v(static_cast<std::size_t>(*product(g[id].shape).constant()));
    for (float& f : v) f = normal(random);
    c.set(g[id].name, std::span<const float>(v));
  }
  c.run();
  return c;
}
void near(const std::vector<float>& a, const std::vector<float>& b, double tolerance = 2e-5) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (std::size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], tolerance * (1 + std::abs(b[k]))) << k;
}

}  // namespace

TEST(Ops, TwoWaysToTheSameResult) {
  Graph g;
  const Tensor a = g.input("a", {5, 17, 33}), b = g.input("b", {5, 33, 9}), x = g.input("x", {2, 6, 11, 13}),
               w = g.input("w", {8, 3, 3, 2}), v = g.input("v", {40});
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto equal = [&](const Tensor& left, const Tensor& right) {
    pairs.emplace_back(str_cat("left ", pairs.size()), str_cat("right ", pairs.size()));
    ASSERT_EQ(left.shape(), right.shape());
    g.output(pairs.back().first, left);
    g.output(pairs.back().second, right);
  };
  equal(einsum("bij,bjk->bik", {a, b}), matmul(a, b));
  equal(einsum("bij,bjk->kbi", {a, b}), matmul(a, b).permute({2, 0, 1}));
  equal(einsum("bij,bjk,bij->bk", {a, b, a}), sum(matmul(a * a, b), {1}));
  {  // a convolution equals the product of its windows and its filters, group by group
    const Tensor windows = pad(pad(x, 2, 1, 1), 3, 2, 2).unfold(2, 3, 2).unfold(3, 2, 1);  // [2, 6, 6, 16, 3, 2]
    std::vector<Tensor> groups;
    for (int k : {0, 1}) {
      const Tensor rows = windows.slice(1, 3 * k, 3 * k + 3).permute({0, 2, 3, 1, 4, 5}).reshape({2, 6 * 16, 18});
      const Tensor filters = w.slice(0, 4 * k, 4 * k + 4).reshape({4, 18});
      groups.push_back(linear(rows, filters).transpose(1, 2).reshape({2, 4, 6, 16}));
    }
    equal(conv(x, w, {.stride = {2, 1}, .padding = {1, 2}, .groups = 2}), concat(groups, 1));
  }
  equal(avg_pool(x, {3}, {2}, {1}), sum(pad(pad(x, 2, 1, 1), 3, 1, 1).unfold(2, 3, 2).unfold(3, 3, 2), {4, 5}) / 9);
  equal(avg_pool(x, {5}, {1}, {2}), sum(pad(pad(x, 2, 2, 2), 3, 2, 2).unfold(2, 5, 1).unfold(3, 5, 1), {4, 5}) / 25);
  equal(max_pool(x, {2}), amax(x.unfold(2, 2, 2).unfold(3, 2, 2), {4, 5}));
  const auto beyond = [](const Tensor& t, int axis) { return pad(t, axis, 2, 2, PadMode::Constant, -kInf); };
  equal(max_pool(x, {5}, {1}, {2}), amax(beyond(beyond(x, 2), 3).unfold(2, 5, 1).unfold(3, 5, 1), {4, 5}));
  equal(log(softmax(a, 1)), log_softmax(a, 1));
  equal(log(sum(exp(a), {2})), logsumexp(a, {2}));
  equal(cumsum(v, 0), matmul(tril(full(g, {40, 40}, 1)), v));
  equal(slice(cumsum(v, 0), 0, -1, 40), sum(v, {0}, true));
  equal(diff(cumsum(v, 0)), slice(v, 0, 1, 40));
  equal(cummax(v, 0).values, -cummin(-v, 0).values);
  equal(layer_norm(x, {x.extent(-3), x.extent(-2), x.extent(-1)}), group_norm(x, 1));
  equal(instance_norm(x), group_norm(x, 6));
  equal(var(a, {0, 2}) * (5 * 33 - 1), sum(square(a - mean(a, {0, 2}, true)), {0, 2}));
  equal(norm(a, 2, {1}), sqrt(einsum("bij,bij->bj", {a, a})));
  equal(scaled_dot_product_attention(a, a, a, {.is_causal = true}),
        matmul(softmax(where(tril(full(g, {17, 17}, 1, DType::Bool)), matmul(a, a.transpose(1, 2)) / std::sqrt(33.0),
                             -kInf),
                       -1),
               a));
  equal(scatter_add(full(g, {40}, 0), 0, argsort(v), v), gather(v, 0, argsort(argsort(v))));
  equal(gelu(v), v * 0.5 * erfc(v * -std::sqrt(0.5)));
  equal(tanh(v), sinh(v) / cosh(v));
  equal(atan2(sin(v), cos(v)),
        asin(sin(v)) * sign(cos(v)) + where(cos(v) < 0.0, sign(sin(v)) * 3.14159265358979, full_like(v, 0)));
  equal(pixel_unshuffle(pixel_shuffle(x.slice(1, 0, 4), 2), 2), x.slice(1, 0, 4));
  equal(concat(split(a, {4, 10, 3}, 1), 1), a);
  equal(stack(unbind(a, 1), 1), a);
  equal(index_select(a, 1, arange(g, 16, -1, -1)), a.flip(1));
  equal(one_hot(argmax(a, 2), 33) * 1.0 * a, where(eq(a, amax(a, {2}, true)), a, full_like(a, 0)));
  const Context c = run(g);
  for (const auto& [left, right] : pairs) {
    SCOPED_TRACE(left);
    near(c.get(left), c.get(right));
  }
}

TEST(Ops, NormsHaveMeanZeroAndVarianceOne) {
  for (const int n : {1, 2, 7, 64, 1000}) {
    Graph g;
    const Tensor x = g.input("x", {3, n}) * 5 + 2;
    const Tensor y = layer_norm(x, {x.extent(-1)}, {}, {}, 0);
    g.output("mean", mean(y, {1}));
    g.output("square", mean(square(y), {1}));
    g.output("rms", mean(square(rms_norm(x, {x.extent(-1)}, {}, 0.0)), {1}));
    const Context c = run(g, static_cast<unsigned>(n));
    for (const float f : c.get("rms")) EXPECT_NEAR(f, 1, 1e-4) << n;
    if (n == 1) continue;  // 0 / 0
    for (const float f : c.get("mean")) EXPECT_NEAR(f, 0, 1e-4) << n;
    for (const float f : c.get("square")) EXPECT_NEAR(f, 1, 1e-3) << n;
  }
}

TEST(Ops, SortsOfEveryKindArePermutations) {
  for (const DType type : {DType::F32, DType::F64, DType::I8, DType::I32, DType::I64, DType::U8}) {
    for (const bool descending : {false, true}) {
      Graph g;
      const Tensor x = to(g.input("x", {40, 3}) * 4, type);
      const Sorted s = sort(x, 0, descending);
      const Tensor before = slice(s.values, 0, 0, 39), after = slice(s.values, 0, 1, 40);
      g.output("ordered", all(descending ? before >= after : before <= after));
      g.output("back", all(eq(gather(s.values, 0, argsort(s.indices, 0)), x)));
      g.output("stable", all(logical_or(ne(before, after), slice(s.indices, 0, 0, 39) < slice(s.indices, 0, 1, 40))));
      const Sorted top = topk(x, 5, 0, descending);
      g.output("top", all(eq(top.values, slice(s.values, 0, 0, 5))));
      const Context c = run(g);
      for (const char* name : {"ordered", "back", "stable", "top"})
        EXPECT_EQ(c.scalar(name), 1) << name << " of " << lc::name(type) << (descending ? " descending" : "");
    }
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
  const Program p = compile(g, generic() | test::device());
  Context c(p);
  c.set("x", v).run();
  for (float one : c.get("ones")) EXPECT_NEAR(one, 1, 1e-5);
  EXPECT_EQ(c.get("back"), v);
  EXPECT_EQ(c.scalar("rising"), 1);
}
