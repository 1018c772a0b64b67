// Attention and the Transformer layers are torch.nn's, with masks and with a cache for decoding.
#include <gtest/gtest.h>
#include <cmath>

#include "error_of.h"
#include "layer_goldens.h"
#include "lightcone/nn/transformer.h"
#include "lightcone/runtime/program.h"
#include "on_device.h"

using namespace lc;

namespace {

using Tensors = std::vector<Tensor>;
Tensor truth(const Tensor& t) { return to(t, DType::Bool); }

TEST(Transformer, AttentionIsPyTorchs) {
  LayerCases cases;
  cases.add("MultiheadAttention", nn::MultiheadAttention(8, 2), with_mode);
  cases.add("MultiheadAttention causal", nn::MultiheadAttention(8, 2, {.bias = false, .causal = true}), with_mode);
  cases.add("MultiheadAttention cross", nn::MultiheadAttention(8, 4),
            [](const auto& layer, const std::vector<Tensor>& x, auto& mode) { return layer(x[0], x[1], x[2], mode); });
  const nn::TransformerLayerOptions o{.dim_feedforward = 12, .dropout = 0};
  cases.add("TransformerEncoderLayer", nn::TransformerEncoderLayer(8, 2, o), with_mode);
  cases.add("TransformerEncoder", nn::TransformerEncoder(nn::TransformerEncoderLayer(8, 2, o), 2), with_mode);
  nn::TransformerLayerOptions first = o, causal = o;
  first.norm_first = true, first.activation = nn::Activation::GELU;
  causal.causal = true;
  cases.add("TransformerEncoderLayer norm first", nn::TransformerEncoderLayer(8, 2, first), with_mode);
  cases.add("TransformerEncoderLayer causal", nn::TransformerEncoderLayer(8, 2, causal), with_mode);
  cases.check();
}

// With dropout, the attention weights are materialized. If no element is dropped, the result is the same.
TEST(Transformer, AttentionDropsOutWhileItTrains) {
  Graph g;
  nn::Model<nn::MultiheadAttention> tiny(
      g, nn::MultiheadAttention(8, 4, {.dropout = 1e-9, .causal = true, .kv_heads = 2}));
  const auto x = typed::input<float, 2, 5, 8>(g, "x");
  nn::Inference inference;
  nn::Training training(tiny);
  const nn::AttentionMasks masks{.key_padding_mask = typed::input<bool, 2, 5>(g, "padding"),
                                 .attn_mask = full(g, {5, 5}, 0.5)};
  const Tensor a = tiny.module()(x, masks, inference), b = tiny.module()(x, masks, training);
  amax(abs(a - b)).retrieve("off");
  EXPECT_EQ(a.shape(), x.shape());
  Program p = compile(g, generic() | test::device());
  tiny.initialise(p, 1);
  Context c(p);
  std::vector<float> values;
  for (int k = 0; k < 80; ++k) values.push_back(static_cast<float>((k * 37) % 19) / 9 - 1);
  const bool padding[10] = {false, true, false, false, false, false, false, true, true, true};
  c.set_bytes("padding", padding, sizeof(padding));
  EXPECT_LT(c.set("x", values).run().scalar("off"), 1e-5f);
}

TEST(Transformer, MasksArePyTorchs) {
  LayerCases cases;
  const nn::MultiheadAttention attention(4, 2);
  cases.add("MultiheadAttention padding", attention, [](const auto& layer, const Tensors& x, auto& mode) {
    return layer(x[0], x[1], x[1], {.key_padding_mask = truth(x[2])}, mode);
  });
  cases.add("MultiheadAttention masks", attention, [](const auto& layer, const Tensors& x, auto& mode) {
    const Tensor padding = to(x[3], DType::F32);
    return layer(x[0], x[1], x[1],
                 {.key_padding_mask = where(truth(x[3]), -kInf + padding, padding), .attn_mask = x[2]}, mode);
  });
  cases.add("MultiheadAttention each head", attention, [](const auto& layer, const Tensors& x, auto& mode) {
    return layer(x[0], x[1], x[1], {.attn_mask = truth(x[2])}, mode);
  });
  cases.check();
}

TEST(Transformer, WidthsHeadsAndWeights) {
  LayerCases cases;
  cases.add("MultiheadAttention widths", nn::MultiheadAttention(4, 2, {.kdim = 3, .vdim = 5}),
            [](const auto& layer, const Tensors& x, auto& mode) { return layer(x[0], x[1], x[2], mode); });
  cases.add("MultiheadAttention unbatched", nn::MultiheadAttention(4, 2), with_mode);
  cases.add("MultiheadAttention grouped", nn::MultiheadAttention(8, 4, {.causal = true, .kv_heads = 2}), with_mode);
  cases.add("MultiheadAttention weights", nn::MultiheadAttention(4, 2), [](const auto& layer, const Tensors& x, auto&) {
    const auto [output, weights] = layer.with_weights(x[0], x[1], x[1], {.key_padding_mask = truth(x[2])});
    return joined({output, weights});
  });
  cases.check();
}

TEST(Transformer, StacksArePyTorchs) {
  LayerCases cases;
  const nn::TransformerLayerOptions o{.dim_feedforward = 6, .dropout = 0};
  nn::TransformerLayerOptions first = o, plain = o;
  first.norm_first = true, first.activation = nn::Activation::GELU, first.layer_norm_eps = 1e-3, first.causal = true;
  plain.bias = false, plain.norm_first = true;
  const auto two = [](const auto& layer, const Tensors& x, auto& mode) { return layer(x[0], x[1], mode); };
  cases.add("TransformerEncoder norm",
            nn::TransformerEncoder(nn::TransformerEncoderLayer(4, 2, plain), 2, nn::LayerNorm<>(4)),
            [](const auto& layer, const Tensors& x, auto& mode) {
              return layer(x[0], {.key_padding_mask = truth(x[1])}, mode);
            });
  cases.add("TransformerDecoderLayer", nn::TransformerDecoderLayer(4, 2, o), two);
  cases.add("TransformerDecoderLayer norm first", nn::TransformerDecoderLayer(4, 2, first),
            [](const auto& layer, const Tensors& x, auto& mode) {
              return layer(x[0], x[1], {.memory = {.key_padding_mask = truth(x[2])}}, mode);
            });
  cases.add("TransformerDecoder", nn::TransformerDecoder(nn::TransformerDecoderLayer(4, 2, o), 2, nn::LayerNorm<>(4)),
            two);
  cases.add("Transformer", nn::Transformer(4, 2, {.num_encoder_layers = 1, .num_decoder_layers = 2, .layer = o}),
            [](const auto& layer, const Tensors& x, auto& mode) {
              const nn::AttentionMasks padding{.key_padding_mask = truth(x[2])};
              return layer(x[0], x[1], {.src = padding, .tgt = {.causal = true}, .memory = padding}, mode);
            });
  cases.check();
}

// As in torch: weights of attention and of the whole nn.Transformer are initialized by xavier_uniform, biases of
// attention by 0.
TEST(Transformer, FirstValuesArePyTorchs) {
  Graph g;
  nn::Model<nn::Transformer> model(
      g, nn::Transformer(8, 2, {.num_encoder_layers = 1, .num_decoder_layers = 1, .layer = {.dim_feedforward = 16}}));
  for (const nn::Entry& e : model.entries()) {
    nn::init::Extents s;
    for (const Dim& d : e.tensor.shape()) s.push_back(*d.constant());
    const nn::init::Source from{.seed = 3, .parameter = e.name};
    const nn::init::Values first = e.init(s, from);
    const bool bias = contains(e.name, "proj") && s.size() == 1;
    EXPECT_TRUE(s.size() != 2 || first == nn::init::xavier_uniform(s, from)) << e.name;
    EXPECT_TRUE(!bias || first == nn::init::zeros(s)) << e.name;
  }
  Graph other;
  nn::Model<nn::MultiheadAttention> attention(other, nn::MultiheadAttention(8, 2));
  const nn::init::Source from{.seed = 1, .parameter = "out_proj.weight"};
  const nn::Entry& out = attention.entries()[2];
  ASSERT_EQ(out.name, from.parameter);
  EXPECT_EQ(out.init({8, 8}, from), nn::init::uniform({8, 8}, from, -1 / std::sqrt(8), 1 / std::sqrt(8)));
}

// Decoding token by token with a cache gives the result of all tokens at once, up to the rounding of its type.
void decodes(DType stored, double tolerance) {
  Graph g;
  nn::Model<nn::MultiheadAttention> attention(g, nn::MultiheadAttention(8, 4, {.causal = true, .kv_heads = 2}));
  const Tensor all = g.input("all", {2, 6, 8});
  attention(all).retrieve("all at once");
  // regression: with `now` before `past` in the alphabet, this did not compile (dim_names_test.cpp)
  const Dim past = Dim::symbol("past", 0, 5), now = Dim::symbol("now", 1, 6);
  const Tensor x = g.input("x", {2, now, 8});
  attention.module().decode(x, attention.module().cache(g, "cache", 2, 6, past, stored)).retrieve("y");
  Program p = compile(g, generic() | test::device());
  attention.initialise(p, 1);
  Context c(p);
  std::vector<float> values;
  for (int k = 0; k < 96; ++k) values.push_back(static_cast<float>((k * 37) % 19) / 9 - 1);
  c.set("all", values);
  std::int64_t at = 0;
  for (const std::int64_t n : {3, 1, 2}) {
    std::vector<float> rows;
    for (int b = 0; b < 2; ++b)
      rows.insert(rows.end(), values.begin() + b * 48 + at * 8, values.begin() + b * 48 + (at + n) * 8);
    c.bind("past", at).bind("now", n).set("x", rows).run();
    const std::vector<float> y = c.get("y"), want = c.get("all at once");
    ASSERT_EQ(y.size(), static_cast<std::size_t>(16 * n));
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t k = 0; k < 8 * n; ++k)
        EXPECT_NEAR(y[static_cast<std::size_t>(b * 8 * n + k)], want[static_cast<std::size_t>(b * 48 + at * 8 + k)],
                    tolerance)
            << name(stored);
    at += n;
  }
}
TEST(Transformer, DecodesWithACache) {
  decodes(DType::F32, 1e-5);
  decodes(DType::F16, 2e-3);
  decodes(DType::BF16, 1e-2);
  decodes(DType::I8, 1e-2);
}

TEST(Transformer, MistakesAreSentences) {
  Graph g;
  nn::Inference mode;
  nn::Model<nn::MultiheadAttention> attention(g, nn::MultiheadAttention(4, 2), "a");
  const auto& layer = attention.module();
  const Tensor x = g.input("x", {2, 3, 4}), y = g.input("y", {2, 5, 4}), mask = g.input("mask", {2, 3}, DType::Bool);
  const auto says = [](const std::string& sentence, const std::function<void()>& f) {
    expect_error(f, "MultiheadAttention: " + sentence, "");
  };
  says("3 heads do not divide a width of 10", [] { nn::MultiheadAttention(10, 3); });
  says("3 heads of keys and values do not divide 4", [] { nn::MultiheadAttention(8, 4, {.kv_heads = 3}); });
  says("dropout is 2, kdim 0, vdim 0", [] { nn::MultiheadAttention(8, 4, {.dropout = 2}); });
  says("its parameters were never visited: name the layer in visit(), and call it through its Model",
       [&] { nn::MultiheadAttention(4, 2)(x, mode); });
  says("[2, 3] is not [batch, length, 4]", [&] { layer(x, g.input("a1", {2, 3}), x, mode); });
  says("queries [2, 3, 4], keys [2, 5, 4] and values [2, 3, 4] have one batch, keys and values one length",
       [&] { layer(x, y, x, mode); });
  says("key_padding_mask is [2, 3] and not [2, 5]", [&] { layer(x, y, y, {.key_padding_mask = mask}, mode); });
  says("attn_mask is [2, 3] and neither [3, 5] nor [4, 3, 5]", [&] { layer(x, y, y, {.attn_mask = mask}, mode); });
  says("a mask is bool or floating, not i64", [&] {
    layer(x, {.attn_mask = g.input("a2", {3, 3}, DType::I64)}, mode);
  });
  const auto in_cache = [&](const Shape& shape, DType t) {
    return nn::KeyValueCache(g, "k", "v", shape, Dim::symbol("p", 0, 6), t);
  };
  expect_error(
      [&] {
        layer.decode(x, in_cache({2, 1, 9, 2}, DType::F32));
      },
      "KeyValueCache: states [2, 1, 9, 2] do not take [2, 2, 3, 2]", "");
  expect_error(
      [&] {
        in_cache({2, 1, 9, 2}, DType::F64);
      },
      "KeyValueCache: a cache of f64: it can be f32, f16, bf16 or i8", "");
  expect_error(
      [&] {
        in_cache({9, 2}, DType::F32);
      },
      "KeyValueCache: [9, 2] is not [..., kv_heads, capacity, head]", "");
  expect_error([&] { layer.decode(x, nn::KeyValueCache()); },
               "KeyValueCache: it has no states: MultiheadAttention::cache() makes it", "");
}

}  // namespace
