// Every loss and its gradients are PyTorch's (tests/goldens/losses.txt), in the reference and compiled, at edge values
// too.
//
// tools/make_optim_goldens.py makes the goldens.
#include "lightcone/ops/loss.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "error_of.h"
#include "goldens.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"
#include "on_device.h"

using namespace lc;

namespace {

using T = const std::vector<Tensor>&;
struct Case {
  const char* name;
  Tensor (*build)(T t, Reduction r);
};

// clang-format off
#define B(n, e) {n, [](T t, [[maybe_unused]] Reduction r) { return e; }}
const std::vector<Case> kCases{
    B("mse_loss", mse_loss(t[0], t[1], r)),
    B("l1_loss", l1_loss(t[0], t[1], r)),
    B("huber_loss", huber_loss(t[0], t[1])),
    B("huber_loss none", huber_loss(t[0], t[1], r, 1.5)), B("huber_loss mean", huber_loss(t[0], t[1], r, 1.5)), B("huber_loss sum", huber_loss(t[0], t[1], r, 1.5)),
    B("huber_loss odd", huber_loss(t[0], t[1], Reduction::None)), B("mse_loss odd", mse_loss(t[0], t[1], Reduction::None)),
    B("smooth_l1_loss", smooth_l1_loss(t[0], t[1])), B("smooth_l1_loss beta 0", smooth_l1_loss(t[0], t[1], r, 0)),
    B("smooth_l1_loss none", smooth_l1_loss(t[0], t[1], r, 0.5)), B("smooth_l1_loss mean", smooth_l1_loss(t[0], t[1], r, 0.5)), B("smooth_l1_loss sum", smooth_l1_loss(t[0], t[1], r, 0.5)),
    B("cross_entropy", cross_entropy(t[0], t[1], {.reduction = r})),
    B("cross_entropy large", cross_entropy(t[0], t[1], {.reduction = Reduction::None})),
    B("cross_entropy ignore 2", cross_entropy(t[0], t[1], {.ignore_index = 2})),
    B("cross_entropy weight", cross_entropy(t[0], t[1], {.weight = t[2], .reduction = r})),
    B("cross_entropy smoothing", cross_entropy(t[0], t[1], {.reduction = r, .label_smoothing = 0.2})),
    B("cross_entropy weight smoothing", cross_entropy(t[0], t[1], {.weight = t[2], .reduction = r, .label_smoothing = 0.2})),
    B("cross_entropy dense", cross_entropy(t[0], t[1], {.weight = t[2], .reduction = r, .label_smoothing = 0.1})),
    B("cross_entropy probabilities", cross_entropy(t[0], t[1], {.reduction = r})),
    B("cross_entropy dense probabilities", cross_entropy(t[0], t[1])),
    B("cross_entropy one probabilities", cross_entropy(t[0], t[1])),
    B("cross_entropy probabilities weight smoothing", cross_entropy(t[0], t[1], {.weight = t[2], .reduction = r, .label_smoothing = 0.3})),
    B("nll_loss", nll_loss(t[0], t[1], {.reduction = r})), B("nll_loss infinite", nll_loss(t[0], t[1], {.reduction = Reduction::None})),
    B("nll_loss weight dense", nll_loss(t[0], t[1], {.weight = t[2], .reduction = r})),
    B("binary_cross_entropy", binary_cross_entropy(t[0], t[1], {.reduction = r})),
    B("binary_cross_entropy inside", binary_cross_entropy(t[0], t[1], {.weight = t[2]})),
    B("binary_cross_entropy weight", binary_cross_entropy(t[0], t[1], {.weight = t[2], .reduction = r})),
    B("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits(t[0], t[1], {.reduction = r})),
    B("binary_cross_entropy_with_logits weights", binary_cross_entropy_with_logits(t[0], t[1], {.weight = t[2], .reduction = r, .pos_weight = t[3]})),
    B("kl_div", kl_div(t[0], t[1], r)), B("kl_div zero", kl_div(t[0], t[1], r)), B("kl_div log", kl_div(t[0], t[1], r, true)),
    B("cosine_embedding_loss", cosine_embedding_loss(t[0], t[1], t[2], 0.1, r)), B("cosine_embedding_loss one", cosine_embedding_loss(t[0], t[1], t[2])),
    B("hinge_embedding_loss", hinge_embedding_loss(t[0], t[1], 1.5, r)),
    B("margin_ranking_loss", margin_ranking_loss(t[0], t[1], t[2], 0.5, r)),
    B("soft_margin_loss", soft_margin_loss(t[0], t[1], r)),
    B("multi_margin_loss", multi_margin_loss(t[0], t[1], {.reduction = r})), B("multi_margin_loss one", multi_margin_loss(t[0], t[1])),
    B("multi_margin_loss weight", multi_margin_loss(t[0], t[1], {.p = 2, .margin = 0.5, .weight = t[2], .reduction = r})),
    B("multilabel_margin_loss", multilabel_margin_loss(t[0], t[1], r)), B("multilabel_margin_loss one", multilabel_margin_loss(t[0], t[1])),
    B("multilabel_soft_margin_loss", multilabel_soft_margin_loss(t[0], t[1], {.reduction = r})),
    B("multilabel_soft_margin_loss weight", multilabel_soft_margin_loss(t[0], t[1], {.weight = t[2], .reduction = r})),
    B("triplet_margin_loss", triplet_margin_loss(t[0], t[1], t[2], {.reduction = r})),
    B("triplet_margin_loss swap", triplet_margin_loss(t[0], t[1], t[2], {.margin = 2, .p = 1, .swap = true, .reduction = r})),
    B("gaussian_nll_loss", gaussian_nll_loss(t[0], t[1], t[2], {.reduction = r})),
    B("gaussian_nll_loss full", gaussian_nll_loss(t[0], t[1], t[2], {.full = true, .eps = 0.5})),
    B("poisson_nll_loss", poisson_nll_loss(t[0], t[1], {.reduction = r})),
    B("poisson_nll_loss full", poisson_nll_loss(t[0], t[1], {.full = true, .reduction = Reduction::None})),
    B("poisson_nll_loss plain", poisson_nll_loss(t[0], t[1], {.log_input = false, .eps = 1e-3})),
    B("ctc_loss", ctc_loss(log_softmax(t[0], -1), t[1], t[2], t[3], {.reduction = r})),
    B("ctc_loss none zero_infinity", ctc_loss(log_softmax(t[0], -1), t[1], t[2], t[3], {.reduction = Reduction::None, .zero_infinity = true})),
    B("ctc_loss mean zero_infinity", ctc_loss(log_softmax(t[0], -1), t[1], t[2], t[3], {.zero_infinity = true})),
    B("ctc_loss sum zero_infinity", ctc_loss(log_softmax(t[0], -1), t[1], t[2], t[3], {.reduction = Reduction::Sum, .zero_infinity = true})),
    B("ctc_loss blank 4", ctc_loss(log_softmax(t[0], -1), t[1], t[2], t[3], {.blank = 4})),
};
#undef B
// clang-format on

// Returns the case with the longest name that begins `name`: "cross_entropy weight sum" is "cross_entropy weight" with
// a reduction.
const Case& case_of(const std::string& name) {
  const Case* best = nullptr;
  for (const Case& c : kCases) {
    const std::string n = c.name;
    if (name.starts_with(n) && (name.size() == n.size() || name[n.size()] == ' ') &&
        (!best || n.size() > std::string(best->name).size()))
      best = &c;
  }
  if (!best) throw std::runtime_error("no builder of " + name);
  return *best;
}
Reduction reduction_of(const std::string& name) {
  if (name.ends_with(" none")) return Reduction::None;
  if (name.ends_with(" sum")) return Reduction::Sum;
  return name.ends_with(" batchmean") ? Reduction::BatchMean : Reduction::Mean;
}
Tensor cotangent(const Tensor& t) {  // as in tools/make_optim_goldens.py
  const Tensor k = t.graph().index({product(t.shape())}, Dim::index(0, product(t.shape())), DType::F64);
  return ((fmod(k * 7.0 + 3.0, full_like(k, 11)) - 5.0) / 4.0).reshape(t.shape());
}

// All cases with floating inputs of one type: the loss, and the gradients for which goldens exist.
struct Everything {
  Graph g;
  std::map<std::string, Value> inputs;
  std::map<std::string, Value> want;
  std::set<std::string> used;

  explicit Everything(DType type) {
    for (const Golden& c : goldens("losses.txt")) {
      std::vector<Tensor> in, wrt;
      for (Value v : c.in) {
        if (is_float(v.dtype)) v.dtype = type;
        const std::string name = str_cat(c.name, " in ", in.size());
        in.push_back(g.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
        if (is_float(v.dtype) && wrt.size() + 1 < c.out.size()) wrt.push_back(in.back());
        inputs[name] = v;
      }
      used.insert(case_of(c.name).name);
      const Tensor y = case_of(c.name).build(in, reduction_of(c.name));
      EXPECT_EQ(y.dtype(), type) << c.name;
      result(c.name + " loss", y, c.out[0]);
      if (wrt.empty()) continue;
      const std::vector<Tensor> d = vjp({y}, wrt, {prim::cast(cotangent(y), type)});
      for (std::size_t k = 0; k < d.size(); ++k) result(str_cat(c.name, " gradient ", k), d[k], c.out[k + 1]);
    }
  }
  void result(const std::string& name, const Tensor& t, const Value& golden) {
    g.output(name, t);
    want[name] = golden;
  }
  void compare(const std::map<std::string, Value>& got, double relative, double absolute) const {
    for (const auto& [name, w] : want) {
      const Value& v = got.at(name);
      ASSERT_EQ(v.shape, w.shape) << name;
      for (std::size_t k = 0; k < w.size(); ++k) {
        if (std::isfinite(w.f[k]))
          EXPECT_NEAR(v.f[k], w.f[k], relative * std::abs(w.f[k]) + absolute) << name << "[" << k << "]";
        else
          EXPECT_TRUE(std::isnan(w.f[k]) ? std::isnan(v.f[k]) : v.f[k] == w.f[k])
              << name << "[" << k << "] is " << v.f[k] << ", not " << w.f[k];
      }
    }
  }
};

}  // namespace

TEST(Loss, AnswersAndGradientsAreThoseOfPyTorch) {
  const Everything e(DType::F64);
  EXPECT_GE(e.want.size(), 250u);
  for (const Case& c : kCases) EXPECT_TRUE(e.used.contains(c.name)) << "no golden runs '" << c.name << "'";
  e.compare(interpret(e.g, e.inputs).outputs, 1e-10, 1e-13);
}

TEST(Loss, CompiledForTheCpu) {
  const Everything wide(DType::F64);
  wide.compare(run_values(transform(wide.g, generic() | test::device({.threads = 2})).graph, wide.inputs, {}).outputs,
               1e-9, 1e-12);
}
// In f32 the goldens' inputs are rounded first, and numbers beyond 3e38 become infinite, so the reference interpreter
// is the judge.
TEST(Loss, CompiledInF32) {
  const Everything narrow(DType::F32);
  const VerifyReport r =
      verify(narrow.g, generic() | test::device({.threads = 2}), {.trials = 1, .values = narrow.inputs});
  EXPECT_TRUE(r.ok()) << r.str();
  EXPECT_GT(r.decided(), 0.9);
}

namespace {
Tensor vector(Graph& g, std::initializer_list<double> values, DType type = DType::F64) {
  std::vector<Tensor> parts;
  for (const double v : values) parts.push_back(full(g, {1}, v, type));
  return concat(parts, 0);
}
std::vector<double> computed(const Tensor& t) {
  t.graph().output("computed", t);
  return interpret(t.graph(), {}).outputs.at("computed").f;
}
}  // namespace

// A small loss keeps its digits: log(1 + exp(-40)) is 4.2e-18, which 40 + (-40 + 4.2e-18) would lose.
TEST(Loss, SmallLossesKeepTheirDigits) {
  Graph g;
  const Tensor x = vector(g, {40, -40}), t = vector(g, {1, 0});
  for (const double v : computed(binary_cross_entropy_with_logits(x, t, {.reduction = Reduction::None})))
    EXPECT_NEAR(v, 4.248354255291589e-18, 1e-31);
}
TEST(Loss, NothingTimesALogarithmOfNothingIsNothing) {
  {
    Graph g;
    const Tensor p = vector(g, {0, 1}), x = vector(g, {-kInf, 0});
    EXPECT_EQ(computed(kl_div(x, p, Reduction::Sum))[0], 0);
  }
  {
    Graph g;
    const Tensor x = vector(g, {-kInf, 0});
    EXPECT_EQ(computed(kl_div(x, x, Reduction::Sum, true))[0], 0);
  }
  {
    Graph g;
    const Tensor x = vector(g, {-kInf, 3}), p = vector(g, {0, 1});
    EXPECT_EQ(computed(cross_entropy(x, p))[0], 0);
  }
  {
    Graph g;
    const Tensor x = vector(g, {0, 1}), t = vector(g, {0, 1});
    EXPECT_EQ(computed(binary_cross_entropy(x, t))[0], 0);
  }
}
TEST(Loss, AClassThatDoesNotExistMakesItsLossNaN) {
  Graph g;
  const Tensor x = vector(g, {1, 2, 3, 1, 2, 3, 1, 2, 3}).reshape({3, 3}), t = vector(g, {1, 3, -1}, DType::I64);
  const std::vector<double> v = computed(cross_entropy(x, t, {.reduction = Reduction::None}));
  EXPECT_NEAR(v[0], 1.4076059644443801, 1e-12);
  EXPECT_TRUE(std::isnan(v[1]) && std::isnan(v[2]));
}
// Impossible lengths make the loss NaN, an invalid label makes it infinite; padding does neither.
TEST(Loss, CtcOfWrongLengths) {
  Graph g;
  const Tensor x = log_softmax(full(g, {4, 5, 3}, 0, DType::F64), 2);
  const Tensor labels = vector(g, {1, -7, 1, 1, 1, 1, 1, 9, 1, 1}, DType::I64).reshape({5, 2});
  const Tensor times = vector(g, {4, 5, 4, 4, 0}, DType::I64), lengths = vector(g, {1, 2, 3, 2, 0}, DType::I64);
  const std::vector<double> v = computed(ctc_loss(x, labels, times, lengths, {.reduction = Reduction::None}));
  EXPECT_NEAR(v[0], -std::log(10.0 / 81), 1e-12);  // 10 of the 81 sequences of 4 steps spell the label 1 alone
  EXPECT_TRUE(std::isnan(v[1]) && std::isnan(v[2]));
  EXPECT_EQ(v[3], kInf);
  EXPECT_EQ(v[4], 0);  // an empty label in zero steps
}
// As in PyTorch, the f16 result is the f32 result rounded: sums of many halves do not stop at 2048.
TEST(Loss, HalvesAreRoundedOnce) {
  Graph g;
  const Tensor x = full(g, {3000}, 1, DType::F16), y = l1_loss(x, full_like(x, 0), Reduction::Sum);
  EXPECT_EQ(y.dtype(), DType::F16);
  EXPECT_EQ(computed(y)[0], 3000);
}
TEST(Loss, SymbolicSizes) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 9), c = Dim::symbol("c", 2, 7);
  const Tensor x = g.input("x", {n, c}), t = g.input("t", {n}, DType::I64), p = g.input("p", {n, c});
  g.output("classes", cross_entropy(x, t, {.label_smoothing = 0.1}));
  g.output("probabilities", cross_entropy(x, p, {.label_smoothing = 0.1}));
  g.output("kl", kl_div(x, p, Reduction::BatchMean));
  g.output("gradient", gradient(cross_entropy(x, t), x));
  for (const std::int64_t size : {1, 4, 9}) {
    const VerifyReport r =
        verify(g, generic() | test::device(), {.trials = 2, .wild = false, .sizes = {{"n", size}, {"c", 5}}});
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

#define SAYS(sentence, ...) expect_error([&] { (void)(__VA_ARGS__); }, sentence, "loss_test.cpp")

// clang-format off
TEST(Loss, Errors) {
  Graph g;
  const Tensor x = g.input("x", {4, 3}), y = g.input("y", {4, 1}), v = g.input("v", {4}), i = g.input("i", {4}, DType::I64),
               b = g.input("b", {4}, DType::Bool), w = g.input("w", {2}), s = g.input("s", {}), d = g.input("d", {2, 3, 4, 5});
  SAYS("mse_loss: input [4, 3] and target [4, 1] differ; nothing is broadcast", mse_loss(x, y));
  SAYS("l1_loss: input is i64; convert it to a floating type", l1_loss(i, i));
  SAYS("huber_loss: target is i64; convert it to a floating type", huber_loss(v, i));
  SAYS("huber_loss: delta is 0; it must be above 0", huber_loss(v, v, Reduction::Mean, 0));
  SAYS("smooth_l1_loss: beta is -1; it must be above 0", smooth_l1_loss(v, v, Reduction::Mean, -1));
  SAYS("mse_loss: Reduction::BatchMean belongs to kl_div; use None, Mean or Sum", mse_loss(v, v, Reduction::BatchMean));
  SAYS("kl_div: Reduction::BatchMean needs a batch, axis 0; the input has no axes", kl_div(s, s, Reduction::BatchMean));
  SAYS("cross_entropy: input is [C], [N, C] or [N, C, d...]; it has no axes", cross_entropy(s, i));
  SAYS("cross_entropy: input [4, 3] has classes of [4], not []", cross_entropy(x, g.input("j", {}, DType::I64)));
  SAYS("cross_entropy: input [2, 3, 4, 5] has classes of [2, 4, 5], not [4]", cross_entropy(d, i));
  SAYS("cross_entropy: target is bool; classes are integers", cross_entropy(x, b));
  SAYS("cross_entropy: input [4, 3] and a target of probabilities [4] differ; nothing is broadcast", cross_entropy(x, v));
  SAYS("cross_entropy: a weight [2] does not fit 3 classes", cross_entropy(x, i, {.weight = w}));
  SAYS("cross_entropy: weight is i64; convert it to a floating type", cross_entropy(x, i, {.weight = i}));
  SAYS("cross_entropy: label_smoothing is 1.5; it lies between 0 and 1", cross_entropy(x, i, {.label_smoothing = 1.5}));
  SAYS("cross_entropy: ignore_index is 2, and the target is probabilities; it is for classes", cross_entropy(x, x, {.ignore_index = 2}));
  SAYS("nll_loss: target is f32; classes are integers", nll_loss(x, v));
  SAYS("binary_cross_entropy: weight [5, 1, 1] does not broadcast to [4, 3]", binary_cross_entropy(x, x, {.weight = g.input("u", {5, 1, 1})}));
  SAYS("gaussian_nll_loss: var [2] does not fit input [4, 3]; it has that shape, one axis of 1 in it, or no last axis", gaussian_nll_loss(x, x, w));
  SAYS("gaussian_nll_loss: eps is 0; it must be above 0", gaussian_nll_loss(x, x, x, {.eps = 0}));
  SAYS("cosine_embedding_loss: a target [4, 1] does not fit inputs [4, 3]", cosine_embedding_loss(x, x, y));
  SAYS("cosine_embedding_loss: inputs are [N, D] or [D], not [2, 3, 4, 5]", cosine_embedding_loss(d, d, v));
  SAYS("triplet_margin_loss: input [4, 3] and another operand [4, 1] differ; nothing is broadcast", triplet_margin_loss(x, x, y));
  SAYS("ctc_loss: log_probs [4, 3] and targets [4, 3] are [T, N, C] and [N, S], or [T, C] and [S]", ctc_loss(x, prim::cast(x, DType::I64), i, i));
  SAYS("ctc_loss: blank is 3, and there are 3 classes", ctc_loss(x, i, i, i, {.blank = 3}));
  SAYS("ctc_loss: input_lengths are [4]; one for each of 1 sequences is wanted", ctc_loss(x, i, i, i));
  SAYS("ctc_loss: targets are f32; classes are integers", ctc_loss(x, v, i, i));
  const Dim n = Dim::symbol("n", 1, 8);
  SAYS("ctc_loss: log_probs [n, 3] has n steps; they must be a number when the graph is written", ctc_loss(g.input("z", {n, 3}), i, i, i));
}
// clang-format on
