// The plainest PyTorch names, as its users write them, give torch's answers (tests/goldens/names.txt).
#include <functional>

#include "error_of.h"
#include "lightcone/nn/pool.h"
#include "lightcone/ops/conv.h"
#include "lightcone/verify/random_graph.h"
#include "torch_cases.h"

using namespace lc;

namespace {

using T = const std::vector<Tensor>&;
#define B(n, ...)                                                   \
  {                                                                 \
    n, [](Graph&, T t) { return std::vector<Tensor>{__VA_ARGS__}; } \
  }
#define L(n, ...)                                                     \
  {                                                                   \
    n, [](Graph&, T t) -> std::vector<Tensor> { return __VA_ARGS__; } \
  }
#define P(n, ...)                       \
  {                                     \
    n, [](Graph&, T t) {                \
      const auto [p, q] = __VA_ARGS__;  \
      return std::vector<Tensor>{p, q}; \
    }                                   \
  }
#define G(n, ...)                                                   \
  {                                                                 \
    n, [](Graph& g, T) { return std::vector<Tensor>{__VA_ARGS__}; } \
  }
// clang-format off
const TorchBuilders kBuilders{
    B("x * 2.0", t[0] * 2.0), B("x * 2", t[0] * 2), B("x + true", t[0] + true), B("2.0 - x", 2.0 - t[0]), B("x / 2", t[0] / 2), B("x < 1.5", t[0] < 1.5), B("x == 2", eq(t[0], 2)), B("x != 0.0", ne(t[0], 0.0)),
    B("where(c, 1.0, x)", where(t[0] > 0, 1.0, t[0])), B("where(c, x, 1)", where(t[0] > 0, t[0], 1)), B("where(c, 1, 0)", where(t[0] > 0, 1, 0)), B("where(c, 1.0, 0)", where(t[0] > 0, 1.0, 0)),
    B("pow(2.0, x)", pow(2.0, t[0])), B("pow(3.0, x)", pow(3.0, t[0])), B("pow(2, x)", pow(2, t[0])), B("x % 3", t[0] % 3), B("7 % x", 7 % t[0]), B("floor_divide(x, 3)", floor_divide(t[0], 3)), B("fmod(x, 3)", fmod(t[0], 3)),
    B("add alpha", add(t[0], t[1], 2.5)), B("add number alpha", add(t[0], 3, 2)), B("sub alpha", sub(t[0], t[1], -2)), B("div floor", div(t[0], t[1], RoundingMode::Floor)), B("div trunc", div(t[0], t[1], RoundingMode::Trunc)),
    B("clamp 0, 1", clamp(t[0], 0, 1)), B("clamp low 0", clamp(t[0], 0)), B("clamp high 0.5", clamp(t[0], {}, 0.5)), B("clamp 0, 1.5", clip(t[0], 0, 1.5)), B("clamp tensors", clamp(t[0], t[1], t[2])), B("clamp_min", clamp_min(t[0], 0.5)), B("clamp_max", clamp_max(t[0], 0.5)),
    B("lerp tensor", lerp(t[0], t[1], t[2])), B("logaddexp2", logaddexp2(t[0], t[1])), B("masked_fill", masked_fill(t[0], t[0] > 0, -1)), B("nan_to_num", nan_to_num(t[0], 1, 2, -3)), B("round 2", round(t[0], 2)), B("round -1", round(t[0], -1)),
    B("logit eps", logit(t[0], 0.1)), B("signbit", signbit(t[0])), B("isposinf", isposinf(t[0])), B("isneginf", isneginf(t[0])), B("gelu tanh", gelu(t[0], "tanh")),
    B("sum(x, 1)", sum(t[0], 1)), B("sum dtype", sum(t[0], 1, false, DType::F64)), B("mean dtype", mean(t[0], 0, false, DType::F64)), B("std(x, 1)", lc::std(t[0], 1)), P("var_mean", var_mean(t[0], 1)), P("std_mean", std_mean(t[0], 1, 0)),
    B("max(x)", max(t[0])), B("max(x, y)", max(t[0], t[1])), P("max(x, 1)", max(t[0], 1)), P("min(x, 0)", min(t[0], 0)), P("aminmax", aminmax(t[0], 1)), P("cummax", cummax(t[0], t[0].rank() - 1)), P("cummin", cummin(t[0], t[0].rank() - 1)),
    B("diff 2", diff(t[0], 2)), B("diff 1 0", diff(t[0], 1, 0)),
    B("reshape -1", t[0].reshape({-1, 4})), B("view", t[0].view({6, -1})), B("t", t[0][0].t()), B("x[1]", t[0][1]), B("x[-1]", t[0][-1]), B("expand -1", t[0].slice(1, 0, 1).expand({-1, 5, -1})), B("swapaxes", swapaxes(t[0], 0, 2)),
    B("squeeze", squeeze(index(t[0], {Slice({}, 1), Slice(), Slice({}, 1)}))), B("squeeze 0", squeeze(t[0].slice(0, 0, 1), 0)), B("squeeze 1", squeeze(t[0], 1)), B("unflatten", unflatten(t[0], 2, {2, -1})), B("ravel", ravel(t[0])),
    B("movedim", movedim(t[0], {0, 1}, {-1, 0})), B("narrow", narrow(t[0], 2, 1, 2)), B("narrow -3", narrow(t[0], 2, -3, 2)), B("select", select(t[0], 1, -1)), B("slice -1", t[0].slice(-1, 1, -1)), B("atleast_3d", atleast_3d(t[0][0])), B("atleast_2d", atleast_2d(t[0][0][0])),
    B("cat", cat({t[0], t[0]})), B("cat 1", cat({t[0], t[0]}, 1)), B("stack", stack({t[0], t[0]})), B("hstack", hstack({t[0], t[0]})), B("hstack vectors", hstack({t[0][0][0], t[0][0][1]})), B("vstack", vstack({t[0][0][0], t[0][0][1]})), B("dstack", dstack({t[0][0], t[0][1]})),
    B("column_stack", column_stack({t[0][0], t[0][0].transpose(0, 1)[0], t[0][1]})), B("tensor_split", tensor_split(t[0], 3, 2)[1]), B("tensor_split at", tensor_split(t[0], {1, -1, 9}, -1)[1]), B("tensor_split empty", tensor_split(t[0], {2, 1}, 1)[1]),
    L("split 2", split(t[0], 2, 1)), L("split sizes", split(t[0], {1, 3}, -1)), L("chunk", chunk(t[0], 2, 2)), L("unbind", unbind(t[0], 1)), B("tile", tile(t[0], {2, 3})), B("repeat", repeat(t[0], {2, 1, 1, 3})), B("repeat_interleave", repeat_interleave(t[0], 2)), B("repeat_interleave 1", repeat_interleave(t[0], 3, 1)),
    B("flip", flip(t[0], 1)), B("fliplr", fliplr(t[0])), B("flipud", flipud(t[0])), B("rot90", rot90(t[0])), B("rot90 -1", rot90(t[0], -1, {1, 2})), B("rot90 2", rot90(t[0], 2, {2, 0})), B("roll", roll(t[0], 5)), B("roll axes", roll(t[0], {1, -1}, {0, 2})),
    B("pad", pad(t[0], {1, 2, 0, 3}, PadMode::Constant, 1.5)), B("pad reflect", pad(t[0], {2, 1}, PadMode::Reflect)), L("broadcast_tensors", broadcast_tensors({t[0][0], index(t[0], {Slice(), Slice({}, 1), Slice({}, 1)})})), B("view_as", view_as(t[0], t[0].reshape({4, 6}))), B("expand_as", expand_as(t[0].slice(1, 0, 1), t[0])),
    B("permute", permute(t[0], {2, 0, 1})), B("diagonal", diagonal(t[0], 1, 0, 2)),
    B("index numbers", index(t[0], {1, -1})), B("index slices", index(t[0], {Slice(), Slice(1, -1), Slice({}, {}, 2)})), B("index back", index(index(t[0], {Ellipsis, Slice({}, {}, -1)}), {Ellipsis, 1})), B("index ellipsis", index(t[0], {Ellipsis, NewAxis, 0})),
    B("index tensor", index(t[0], {Slice(), t[1]})), B("index two", index(t[0], {Slice(), t[1], t[2]})), B("index apart", index(t[0], {t[2] - 1, Slice(), t[1]})), B("index mixed", index(t[0], {0, t[1], Slice(1, 3)})), B("index numbers and tensors", index(t[0], {Slice(), Slice(), t[2]})),
    B("zeros_like", zeros_like(t[0])), B("ones_like dtype", ones_like(t[0], DType::I64)), B("full_like", full_like(t[0], 2.5)), G("arange 5", arange(g, 5)), B("arange 2 9 3", arange(t[0], 2, 9, 3)), G("arange down", arange(g, 5, -2, -3)), G("arange real", arange(g, 0.5, 3.0, 0.75)), G("arange mixed", arange(g, 1, 2.5)),
    G("linspace", linspace(g, -1, 2, 7)), G("linspace 1", linspace(g, 3, 5, 1)), G("eye", eye(g, 2, 4)),
    B("conv1d", conv1d(t[0], t[1], t[2], 2, 1, 1, 2)), B("conv2d", conv2d(t[0], t[1], {}, {2, 1}, {0, 1}, {1, 2})), B("conv3d", conv3d(t[0], t[1])), B("conv_transpose1d", conv_transpose1d(t[0], t[1], {}, 2, 1, 1)), B("conv_transpose2d", conv_transpose2d(t[0], t[1], t[2], 2, 0, 0, 2, 2)),
    B("max_pool2d", max_pool2d(t[0], {2, 3}, {1, 2}, 1)), B("avg_pool1d", avg_pool1d(t[0], 3, 2, 1, true, false)), B("adaptive_avg_pool2d", adaptive_avg_pool2d(t[0], {2, 3})), B("embedding", embedding(t[0], t[1])), B("embedding padding", embedding(t[0], t[1], 1)),
    B("layer_norm", layer_norm(t[0], {4, 6}, t[1], t[2], 1e-4)), B("layer_norm weight", layer_norm(t[0], {6}, t[1])), B("rms_norm", rms_norm(t[0], {6}, t[1])), B("rms_norm two", rms_norm(t[0], {4, 6}, {}, 1e-3)), B("group_norm", group_norm(t[0], 2, t[1], t[2])),
    B("batch_norm", batch_norm(t[0], t[1], t[2])), B("batch_norm training", batch_norm(t[0], {}, {}, t[1], t[2], true)), B("instance_norm", instance_norm(t[0], {}, {}, t[1], t[2])),
    B("attention causal", scaled_dot_product_attention(t[0], t[0], t[0], {}, 0, true)), B("attention scale", scaled_dot_product_attention(t[0], t[1], t[1], {.scale = 0.3})), B("attention mask", scaled_dot_product_attention(t[0], t[1], t[1], t[2])), B("attention mask and causal", scaled_dot_product_attention(t[0], t[0], t[0], {.attn_mask = t[1], .is_causal = true})),
    B("einsum", einsum("bij,bkj->bik", t[0], t[1])),
};
// clang-format on

TEST(Names, AnswerAsTorchDoes) {
  hold_against_torch("names.txt", kBuilders, {.f64 = 1e-9, .f32 = 2e-6, .slopes = 1e-7, .of_largest = 1});
}

// Aliases create the same node, because equal nodes are shared.
TEST(Names, AliasesAreTheSameNode) {
  Graph g;
  const Tensor x = g.input("x", {2, 3}), y = g.input("y", {2, 3});
  const auto same = [](const Tensor& a, const Tensor& b) { EXPECT_EQ(a.edge(), b.edge()); };
  same(add(x, y), x + y), same(sub(x, y), x - y), same(mul(x, y), x * y), same(div(x, y), x / y);
  same(remainder(x, 2), x % 2), same(neg(x), -x), same(positive(x), x), same(sgn(x), sign(x)), same(mul(2, x), x * 2);
  same(lt(x, y), x < y), same(gt(x, y), x > y), same(le(x, 1), x <= 1), same(ge(1, x), 1 >= x);
  same(min(x, y), minimum(x, y)), same(transpose(x, 0, 1), t(x)), same(swapdims(x, 0, 1), x.t());
  same(unsqueeze(x, 0), x.view({1, 2, -1})), same(moveaxis(x, 0, 1), movedim(x, 0, 1));
  same(atleast_1d(x[0][0]), x[0][0].view({1})), same(concatenate({x, y}, 1), concat({x, y}, 1));
  same(zeros(g, {2, 3}), zeros_like(x)), same(ones(x, {2, 3}), ones_like(x)), same(empty_like(x), empty(g, {2, 3}));
  same(full(x, {2, 3}, 4), full_like(x, 4)), same(reshape(x, {3, 2}), x.reshape({3, 2}));
  same(expand(x[0], {2, -1}), broadcast_to(x[0], {2, 3})), same(slice(x, 1, 0, -1), x.slice(1, 0, -1));
}

TEST(Names, InPlaceOperatorsNameANewTensor) {
  Graph g;
  Tensor x = g.input("x", {2});
  const Tensor before = x;
  x += 1;
  x *= x;
  x -= before;
  x /= 2.0;
  g.output("y", x);
  Value v = make_value(DType::F32, {2});
  v.f = {1, 2};
  EXPECT_EQ(interpret(g, {{"x", v}}).outputs.at("y").f, (std::vector<double>{1.5, 3.5}));
  Tensor whole = g.input("i", {2}, DType::I64);
  EXPECT_EQ(error_of([&] { whole += 1.5; }).substr(0, 78),
            "operator+=: a tensor of i64 [2] would become one of f32 [2]; write a = a + b, ");
  Tensor one = g.input("one", {1});
  EXPECT_PRED2(contains, error_of([&] { one += before; }), "a tensor of f32 [1] would become one of f32 [2]");
}

TEST(Names, RunningStatisticsMoveOnceARun) {
  Graph g;
  const Tensor mean = g.input("mean", {2}), var = g.input("var", {2});
  g.output("y", batch_norm(g.input("x", {2, 2, 2}), mean, var, {}, {}, true, 0.5));
  Value x = make_value(DType::F32, {2, 2, 2}), m = make_value(DType::F32, {2}), v = m;
  x.f = {1, 2, 3, 4, 5, 6, 7, 8}, v.f = {1, 1};
  const Results r = interpret(g, {{"x", x}, {"mean", m}, {"var", v}});
  EXPECT_EQ(r.states.at("mean").f, (std::vector<double>{1.75, 2.75}));      // halfway to 3.5 and 5.5
  EXPECT_NEAR(r.states.at("var").f[0], 0.5 + 0.5 * (4.25 * 4 / 3), 1e-12);  // the unbiased variance
}

// A single sample gives the result that it has in a batch, without the batch axis.
TEST(Names, ConvolutionsAndPoolsTakeOneSample) {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 6, 5}), w = g.input("w", {3, 4, 3, 2}), up = g.input("up", {4, 3, 2, 2}),
               bias = g.input("bias", {3}), line = g.input("line", {2, 4, 9}), w1 = g.input("w1", {3, 4, 3});
  using F = std::function<Tensor(const Tensor&)>;
  const std::vector<std::pair<Tensor, F>> cases{
      {x, [&](const Tensor& t) { return conv2d(t, w, bias, 2, 1); }},
      {x, [&](const Tensor& t) { return conv(t, w, bias, {.padding = 1}); }},
      {x, [&](const Tensor& t) { return conv_transpose2d(t, up, bias, 2); }},
      {x, [&](const Tensor& t) { return conv_transpose(t, up, {.stride = 2}); }},
      {x, [&](const Tensor& t) { return max_pool2d(t, 2); }},
      {x,
       [&](const Tensor& t) {
         return avg_pool2d(t, {2, 3}, 1, 1);
       }},
      {x, [&](const Tensor& t) { return adaptive_avg_pool2d(t, 2); }},
      {line, [&](const Tensor& t) { return conv1d(t, w1, bias); }},
      {line, [&](const Tensor& t) { return max_pool1d(t, 3); }},
      {x, [&](const Tensor& t) { return nn::MaxPool2d<2>()(t); }},
      {x, [&](const Tensor& t) { return nn::AvgPool2d<>(3, {.stride = 1, .padding = 1})(t); }},
      {x, [&](const Tensor& t) { return nn::AdaptiveMaxPool2d<2>()(t); }},
  };
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const auto& [t, f] = cases[k];
    g.output(str_cat("batch ", k), f(t)[1]), g.output(str_cat("one ", k), f(t[1]));
  }
  const auto out = interpret(g, random_inputs(g, {}, 1, false)).outputs;
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const Value &batch = out.at(str_cat("batch ", k)), &one = out.at(str_cat("one ", k));
    EXPECT_EQ(one.shape, batch.shape) << k;
    EXPECT_EQ(one.f, batch.f) << k;
  }
}

TEST(Names, WrongCallsSayWhatIsWrong) {
  Graph g;
  const Tensor x = g.input("x", {2, 3}), i = g.input("i", {2}, DType::I64), m = g.input("m", {2}, DType::Bool);
  const Tensor s = g.input("s", {Dim::symbol("s", 1, 8)}), t = g.input("t", {Dim::symbol("s", 1, 4096)});
  EXPECT_PRED2(contains, error_of([&] { s + t; }), "s in [1, 8] vs s in [1, 4096]");
  EXPECT_PRED2(contains, error_of([&] { index(x, {0, 0, 0}); }), "index: 3 indices for [2, 3]");
  EXPECT_PRED2(contains, error_of([&] { index(x, {m}); }), "index: an index is a mask: where(), masked_fill()");
  EXPECT_PRED2(contains, error_of([&] { x.select(1, 3); }), "select: there is no element 3 of axis 1 of [2, 3]");
  EXPECT_PRED2(contains, error_of([&] { x[-3]; }), "select: there is no element -3 of axis 0 of [2, 3]");
  EXPECT_PRED2(contains, error_of([&] {
                 x.reshape({-1, 4});
               }),
               "reshape: the extents beside -1 make 4, which does not divide [2, 3]");
  EXPECT_PRED2(contains, error_of([&] { x.reshape({-1, -1}); }), "reshape: [-1, -1]: only one extent can be -1");
  EXPECT_PRED2(contains, error_of([&] { embedding(x, i); }),
               "embedding: ids come first, and are integers, not f32 [2, 3]");
  EXPECT_PRED2(contains, error_of([&] { clamp(x, {}, {}); }), "clamp: needs an end: min or max");
  EXPECT_PRED2(contains, error_of([&] { masked_fill(i, m, 0.5); }),
               "masked_fill: i64 cannot hold 0.5; convert the tensor first");
  EXPECT_PRED2(contains, error_of([&] { batch_norm(x.slice(0, 0, 1), {}, {}, {}, {}, true); }),
               "batch_norm: training needs more than one value in a channel, and [1, 3] has one: take a larger batch");
  EXPECT_PRED2(contains, error_of([&] { conv2d(x, x); }),
               "conv2d: needs [batch, channels, 2 spatial axes], or one sample without a batch, not [2, 3]");
  EXPECT_PRED2(contains, error_of([&] { x + g.input("y", {4}); }),
               "operator+: [2, 3] and [4] differ at axis 1: 3 vs 4");
  EXPECT_PRED2(contains, error_of([&] {
                 scaled_dot_product_attention(x, x, x, g.input("mask", {5, 5}));
               }),
               "scaled_dot_product_attention: ");
  EXPECT_PRED2(contains, error_of([&] { gelu(x, "exact"); }),
               "gelu: approximate is \"none\" or \"tanh\", not \"exact\"");
}

}  // namespace
