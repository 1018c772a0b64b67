// torch.nn.functional's functions give torch's values, types and gradients (tests/goldens/functional.txt), and inputs
// without a torch answer behave as documented.
#include "lightcone/ops/functional/functional.h"

#include <cmath>

#include "error_of.h"
#include "on_device.h"
#include "torch_cases.h"

using namespace lc;

namespace {

using T = const std::vector<Tensor>&;

std::vector<Tensor> attend(T t, MultiHeadAttentionArguments o = {}) {
  o.num_heads = 2, o.in_proj_weight = t[3], o.in_proj_bias = t[4], o.out_proj_weight = t[5], o.out_proj_bias = t[6];
  const Attended a = multi_head_attention_forward(t[0], t[1], t[2], o);
  return {a.output, a.weights};
}
std::vector<Tensor> attend_widths(T t) {
  const Attended a = multi_head_attention_forward(
      t[0], t[1], t[2],
      {.num_heads = 4, .q_proj_weight = t[3], .k_proj_weight = t[4], .v_proj_weight = t[5], .out_proj_weight = t[6]});
  return {a.output, a.weights};
}
std::vector<int> size_of_case(const Tensor& x) {
  return x.rank() == 3 ? std::vector{7} : x.rank() == 4 ? std::vector{7, 3} : std::vector{2, 5, 4};
}

#define B(n, ...)                                                   \
  {                                                                 \
    n, [](Graph&, T t) { return std::vector<Tensor>{__VA_ARGS__}; } \
  }
#define A(n, ...)                              \
  {                                            \
    n, [](Graph&, T t) { return __VA_ARGS__; } \
  }
#define E(n, ...)                       \
  {                                     \
    n, [](Graph&, T t) {                \
      const auto [p, q] = __VA_ARGS__;  \
      return std::vector<Tensor>{p, q}; \
    }                                   \
  }
#define M(m)                                                                       \
  B("interpolate " m, interpolate(t[0], {.size = size_of_case(t[0]), .mode = m})), \
      B("interpolate " m " scale", interpolate(t[0], {.scale_factor = {1.5}, .mode = m}))
#define L(m)                                                                                \
  M(m),                                                                                     \
      B("interpolate " m " corners",                                                        \
        interpolate(t[0], {.size = size_of_case(t[0]), .mode = m, .align_corners = true})), \
      B("interpolate " m " again",                                                          \
        interpolate(t[0], {.scale_factor = {2.3}, .mode = m, .recompute_scale_factor = true}))
#define S(m, p)                                                  \
  B("grid_sample " m " " p " 0", grid_sample(t[0], t[1], m, p)), \
      B("grid_sample " m " " p " 1", grid_sample(t[0], t[1], m, p, true))
#define W(m)                                                                       \
  B("embedding_bag " m, embedding_bag(t[0], t[1], {.mode = m})),                   \
      B("embedding_bag offsets " m, embedding_bag(t[0], t[1], t[2], {.mode = m})), \
      B("embedding_bag last " m,                                                   \
        embedding_bag(t[0], t[1], t[2], {.mode = m, .include_last_offset = true, .padding_idx = 2}))
// clang-format off
const TorchBuilders kBuilders{
    B("unfold", unfold(t[0], {2, 3}, {2, 1}, {1, 0}, {1, 2})), B("fold", fold(t[0], {5, 6}, {2, 3}, {2, 1}, {1, 0}, {1, 2})), B("fold plain", fold(t[0], {4}, {2}, {1}, {0}, {2})),
    B("lp_pool 2", lp_pool(t[0], 2, {2, 3}, {1, 2})), B("lp_pool 3", lp_pool(t[0], 3, {2}, {}, true)),
    E("max_pool_with_indices", max_pool_with_indices(t[0], {3, 2}, {2, 1}, {1, 0})), E("max_pool_with_indices dilated", max_pool_with_indices(t[0], {2}, {1}, {1}, {2})),
    B("max_unpool", max_unpool(t[0], t[1], {2})), B("max_unpool size", max_unpool(t[0], t[1], {2}, {}, {0}, {5, 7})),
    B("local_response_norm", local_response_norm(t[0], 3, 0.1, 0.5, 2)), B("local_response_norm even", local_response_norm(t[0], 4)), B("channel_shuffle", channel_shuffle(t[0], 3)),
    M("nearest"), M("nearest-exact"), M("area"), L("linear"), L("bilinear"), L("trilinear"), L("bicubic"), B("interpolate factors", interpolate(t[0], {.scale_factor = {0.5, 1.7}, .mode = "bilinear"})),
    S("bilinear", "zeros"), S("bilinear", "border"), S("bilinear", "reflection"), S("nearest", "zeros"), S("nearest", "border"), S("nearest", "reflection"),
    B("affine_grid 0", t[0].extent(1) == Dim(2) ? affine_grid(t[0], {2, 3, 3, 4}) : affine_grid(t[0], {1, 1, 2, 3, 1})), B("affine_grid 1", t[0].extent(1) == Dim(2) ? affine_grid(t[0], {2, 3, 3, 4}, true) : affine_grid(t[0], {1, 1, 2, 3, 1}, true)),
    B("pairwise_distance", pairwise_distance(t[0], t[1])), B("pairwise_distance 3", pairwise_distance(t[0], t[1], 3, 1e-3, true)),
    W("sum"), W("mean"), W("max"), B("embedding_bag_weighted", embedding_bag_weighted(t[0], t[1], t[2])), B("embedding_bag_weighted offsets", embedding_bag_weighted(t[0], t[1], t[2], t[3])),
    A("attend", attend(t)), A("attend heads", attend(t, {.average_attn_weights = false})), A("attend masks", attend(t, {.key_padding_mask = t[8], .attn_mask = t[7]})),
    A("attend bias", attend(t, {.bias_k = t[7], .bias_v = t[8], .add_zero_attn = true, .attn_mask = t[9].pad(2, 0, 0)})), A("attend no batch", attend(t, {.attn_mask = t[7]})), A("attend widths", attend_widths(t)),
};
// clang-format on

TEST(Functional, AnswersAsTorchDoes) {
  hold_against_torch("functional.txt", kBuilders, {.f64 = 1e-11, .slopes = 1e-9, .of_largest = 1}, 80);
}

// The classes of many draws follow the softmax; hard samples are one-hot.
TEST(Functional, GumbelSoftmaxDrawsFromTheSoftmax) {
  Graph g;
  Random random(g, 3);
  const Tensor logits = g.input("logits", {3}, DType::F32), many = logits.unsqueeze(0).expand({20000, 3});
  const Tensor hard = gumbel_softmax(random, many, 0.7, true);
  mean(hard, {0}).retrieve("share");
  sum(hard, {1}).retrieve("ones");
  const Tensor soft = gumbel_softmax(random, many, 0.7);
  sum(soft, {1}).retrieve("soft");
  softmax(logits, 0).retrieve("want");
  gradient(sum(hard * logits), logits).retrieve("slope");
  std::map<std::string, Value> in{{"logits", make_value(DType::F32, {3})}};
  in["random.step"] = make_value(DType::I64, {});
  in["logits"].f = {0.5, -1, 1.5};
  const auto r = run_values(transform(g, generic() | test::device({.threads = 2})).graph, in, {}).outputs;
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(r.at("share").f[k], r.at("want").f[k], 0.015);
    EXPECT_NE(r.at("slope").f[k], 0);
  }
  for (const double v : r.at("ones").f) EXPECT_EQ(v, 1);
  for (const double v : r.at("soft").f) EXPECT_NEAR(v, 1, 1e-5);
}

// Dropout of the attention weights: some are 0, the others twice as large, and the output is computed from them.
TEST(Functional, AttentionDropsWeights) {
  Graph g;
  Random random(g, 3);
  const Tensor x = g.input("x", {6, 1, 4}), w = g.input("w", {12, 4}), out = g.input("out", {4, 4});
  const MultiHeadAttentionArguments plain{.num_heads = 1, .in_proj_weight = w, .out_proj_weight = out};
  MultiHeadAttentionArguments dropping = plain;
  dropping.dropout_p = 0.5, dropping.random = &random;
  multi_head_attention_forward(x, x, x, plain).weights.retrieve("all");
  multi_head_attention_forward(x, x, x, dropping).weights.retrieve("some");
  std::map<std::string, Value> in{{"x", make_value(DType::F32, {6, 1, 4})},
                                  {"w", make_value(DType::F32, {12, 4})},
                                  {"out", make_value(DType::F32, {4, 4})}};
  for (auto& [name, v] : in)
    for (std::size_t k = 0; k < v.f.size(); ++k) v.f[k] = std::sin(static_cast<double>(7 * k + name.size()));
  in["random.step"] = make_value(DType::I64, {});
  const auto r = run_values(transform(g, generic() | test::device({.threads = 2})).graph, in, {}).outputs;
  int dropped = 0;
  for (std::size_t k = 0; k < r.at("all").size(); ++k) {
    const double v = r.at("some").f[k];
    dropped += v == 0;
    if (v != 0) {
      EXPECT_NEAR(v, 2 * r.at("all").f[k], 1e-5);
    }
  }
  EXPECT_GT(dropped, 5);
  EXPECT_LT(dropped, 31);
}

// Symbolic batches and channels.
TEST(Functional, SymbolicBatches) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 6);
  const Tensor x = g.input("x", {n, 2, 4, 5}), grid = g.input("grid", {n, 3, 3, 2});
  g.output("columns", unfold(x, {2}));
  g.output("folded", fold(unfold(x, {2}), {4, 5}, {2}));
  g.output("sampled", grid_sample(x, grid));
  g.output("resized", interpolate(x, {.size = {7, 3}, .mode = "bicubic"}));
  g.output("pooled", max_pool_with_indices(x, {2}).values);
  for (const std::int64_t size : {1, 6}) {
    const VerifyReport r =
        verify(g, generic() | test::device({.threads = 2}), {.trials = 2, .wild = false, .sizes = {{"n", size}}});
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

TEST(Functional, Mistakes) {
  Graph g;
  const Tensor x = g.input("x", {2, 3, 4, 5}), v = g.input("v", {4}), i = g.input("i", {3}, DType::I64),
               w = g.input("w", {9, 4});
  const auto expect = [](const std::function<void()>& f, const std::string& sentence) {
    expect_error(f, sentence, "functional_test.cpp");
  };
  expect([&] { unfold(v, {2}); }, "unfold: needs [b, c, h, w], not [4]");
  expect([&] { unfold(x, {6}); }, "unfold: a window of 6 in an image of 4");
  expect([&] { fold(g.input("f", {2, 8, 3}), {4}, {2}); }, "fold: [2, 8, 3] is not [b, channels * 4, 9]");
  expect([&] { interpolate(x, {.size = {2}, .mode = "linear"}); },
         "interpolate: there is no mode \"linear\" of 2 spatial axes");
  expect([&] { interpolate(x, InterpolateOptions{}); }, "interpolate: needs a size or a scale_factor, one of them");
  expect([&] { interpolate(x, {.size = {2}, .align_corners = true}); },
         "interpolate: \"nearest\" has no corners to align");
  expect(
      [&] {
        grid_sample(x, g.input("g", {2, 3, 3, 3}));
      },
      "grid_sample: an image [2, 3, 4, 5] and a grid [2, 3, 3, 3] are not [b, c, h, w] and [b, oh, ow, 2] (or with one "
      "axis more)");
  expect(
      [&] {
        grid_sample(x, g.input("h", {2, 3, 3, 2}), "cubic");
      },
      "grid_sample: mode is \"bilinear\", \"nearest\" or \"bicubic\", not \"cubic\"");
  expect([&] { embedding_bag(i, w); }, "embedding_bag: ids are [b, n], or [n] with offsets; not [3]");
  expect([&] { embedding_bag(i, w, i, {.mode = "min"}); },
         "embedding_bag: mode is \"sum\", \"mean\" or \"max\", not \"min\"");
  expect([&] { channel_shuffle(x, 2); }, "channel_shuffle: 2 groups of 3 channels");
  expect([&] { max_unpool(x, x, {2}); }, "max_unpool: indices are integers of [2, 3, 4, 5], not f32 [2, 3, 4, 5]");
  expect([&] { multi_head_attention_forward(w, w, w, {.num_heads = 3}); },
         "multi_head_attention_forward: 3 heads do not divide a width of 4");
}

TEST(Functional, EveryPassAgreesOnWildNumbers) { EXPECT_GT(verify_cases("functional.txt", kBuilders), 1000u); }

}  // namespace
