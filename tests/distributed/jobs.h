// Training steps of small models, with the first values of their parameters and the inputs of each step.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lightcone/autograd/autograd.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/ops/conv.h"
#include "lightcone/ops/loss.h"
#include "lightcone/ops/ops.h"
#include "lightcone/optim/optim.h"

namespace lc::test {

using Floats = std::vector<float>;

// A training step with the initial values of its parameters and the inputs of each step.
struct Job {
  Graph graph;
  std::map<std::string, Floats> parameters;
  std::map<std::string, std::vector<Floats>> inputs;  // by name: a value for each step
  std::vector<Tensor> trained;

  Tensor parameter(const std::string& name, const Shape& shape, double scale) {
    std::mt19937 random(static_cast<unsigned>(parameters.size() + 1));
    std::normal_distribution<float> normal(0, static_cast<float>(scale));
    Floats& v = parameters[name];
    v.resize(static_cast<std::size_t>(*product(shape).constant()));
    for (float& x : v) x = scale == 0 ? 1 : normal(random);
    trained.push_back(graph.parameter(name, shape));
    return trained.back();
  }
  void train(const Tensor& loss, const optim::Optimizer& optimizer = optim::SGD{.lr = 0.1, .momentum = 0.9}) {
    graph.output("loss", loss);
    std::vector<optim::Update> updates;
    const auto d = gradients(loss, trained);
    for (std::size_t k = 0; k < trained.size(); ++k) updates.push_back({trained[k], d[k]});
    const auto clipped = optim::clip_grad_norm(updates, 1.0);
    graph.output("norm", clipped.norm);
    optim::step(optimizer, clipped.updates);
  }
};

inline constexpr int kSteps = 50;

inline Job mlp() {
  Job j;
  const Tensor x = j.graph.input("x", {8, 12}), labels = j.graph.input("labels", {8}, DType::I64);
  const Tensor up = j.parameter("up.weight", {16, 12}, 0.3), bias = j.parameter("up.bias", {16}, 0.3),
               down = j.parameter("down.weight", {4, 16}, 0.3);
  j.train(cross_entropy(linear(relu(linear(x, up, bias)), down), labels));
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (int k = 0; k < kSteps; ++k) {
    Floats a(96), b(8);
    for (float& v : a) v = normal(random);
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = static_cast<float>(std::max_element(&a[i * 12], &a[i * 12 + 4]) - &a[i * 12]);
    j.inputs["x"].push_back(k < 2 ? a : j.inputs["x"][static_cast<std::size_t>(k) % 2]);
    j.inputs["labels"].push_back(k < 2 ? b : j.inputs["labels"][static_cast<std::size_t>(k) % 2]);
  }
  return j;
}

// Layers of a GPT: 4 texts of 8 tokens, a width of 16, a vocabulary of 24 whose table is read and multiplied with.
inline Job gpt(const optim::Optimizer& optimizer = optim::SGD{.lr = 0.1, .momentum = 0.9},
               std::int64_t number_of_heads = 4, int layers = 2) {
  Job j;
  constexpr std::int64_t kTexts = 4, kLength = 8, kWidth = 16, kWords = 24;
  const Tensor ids = j.graph.input("ids", {kTexts, kLength}, DType::I64),
               next = j.graph.input("next", {kTexts, kLength}, DType::I64);
  const Tensor table = j.parameter("wte.weight", {kWords, kWidth}, 0.3),
               place = j.parameter("wpe", {kLength, kWidth}, 0.1);
  Tensor x = add(embedding(ids, table), place);
  const auto heads = [&](const Tensor& t) {
    return t.reshape({kTexts, kLength, number_of_heads, kWidth / number_of_heads}).transpose(1, 2);
  };
  for (int k = 0; k < layers; ++k) {
    const std::string at = str_cat("h.", k, ".");
    const auto w = [&](const char* name, std::int64_t m, std::int64_t n) {
      return j.parameter(at + name, {m, n}, 0.25);
    };
    const Tensor h = layer_norm(x, {kWidth}, j.parameter(at + "ln_1.weight", {kWidth}, 0));
    const Tensor q = linear(h, w("attn.q.weight", kWidth, kWidth)), key = linear(h, w("attn.k.weight", kWidth, kWidth)),
                 v = linear(h, w("attn.v.weight", kWidth, kWidth));
    const Tensor a = scaled_dot_product_attention(heads(q), heads(key), heads(v), {.is_causal = true});
    x = add(x, linear(a.transpose(1, 2).reshape({kTexts, kLength, kWidth}), w("attn.o.weight", kWidth, kWidth)));
    const Tensor g = layer_norm(x, {kWidth}, j.parameter(at + "ln_2.weight", {kWidth}, 0));
    x = add(x,
            linear(gelu(linear(g, w("mlp.up.weight", 4 * kWidth, kWidth))), w("mlp.down.weight", kWidth, 4 * kWidth)));
  }
  j.train(cross_entropy(linear(x, table).transpose(1, 2), next), optimizer);
  std::mt19937 random(9);
  for (int k = 0; k < kSteps; ++k) {
    Floats a(kTexts * kLength), b(kTexts * kLength);
    for (float& v : a) v = static_cast<float>(random() % kWords);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>((static_cast<int>(a[i]) * 5 + 1) % kWords);
    j.inputs["ids"].push_back(a), j.inputs["next"].push_back(b);
  }
  return j;
}

// A ResNet's stem and two blocks; batch norms take the statistics of the whole batch, on whatever ranks it lies.
inline Job resnet() {
  Job j;
  constexpr std::int64_t kPictures = 8, kSize = 8, kChannels = 8, kClasses = 4;
  const Tensor x = j.graph.input("x", {kPictures, 3, kSize, kSize}),
               labels = j.graph.input("labels", {kPictures}, DType::I64);
  const auto layer = [&](const Tensor& in, const std::string& at, std::int64_t stride) {
    const std::int64_t channels = *in.extent(1).constant();
    const Tensor y = conv(in, j.parameter(at + ".conv.weight", {kChannels, channels, 3, 3}, 0.2),
                          {.stride = {static_cast<int>(stride)}, .padding = {1}});
    return batch_norm(y, {}, {}, j.parameter(at + ".bn.weight", {kChannels}, 0), {}, true);
  };
  Tensor h = relu(layer(x, "stem", 1));
  for (const char* block : {"layer1", "layer2"})
    h = relu(add(h, layer(relu(layer(h, str_cat(block, ".0"), 1)), str_cat(block, ".1"), 1)));
  h = mean(max_pool2d(h, 2), {2, 3});
  j.train(cross_entropy(linear(h, j.parameter("fc.weight", {kClasses, kChannels}, 0.3)), labels));
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Floats pictures(kPictures * 3 * kSize * kSize), classes(kPictures);
  for (float& v : pictures) v = normal(random);
  for (float& v : classes) v = static_cast<float>(random() % kClasses);
  j.inputs["x"].assign(kSteps, pictures), j.inputs["labels"].assign(kSteps, classes);
  return j;
}

// A layer of a Llama: rotations, two heads of keys for four of queries, a gated MLP.
inline Job llama() {
  Job j;
  constexpr std::int64_t kTexts = 4, kLength = 8, kWidth = 16, kHeads = 4, kKeyHeads = 2, kHead = 4, kWords = 24;
  const Tensor ids = j.graph.input("ids", {kTexts, kLength}, DType::I64),
               next = j.graph.input("next", {kTexts, kLength}, DType::I64);
  const auto w = [&](const char* name, std::int64_t m, std::int64_t n) {
    return j.parameter(str_cat("layers.0.", name, ".weight"), {m, n}, 0.25);
  };
  Tensor x = embedding(ids, j.parameter("embed.weight", {kWords, kWidth}, 0.3));
  const Tensor place = arange(j.graph, kLength).to(DType::F32).reshape({kLength, 1}).expand({kLength, kHead / 2});
  const auto heads = [&](const Tensor& t, std::int64_t n) {
    return t.reshape({kTexts, kLength, n, kHead}).transpose(1, 2);
  };
  const auto turned = [&](const Tensor& t) { return rope(t, cos(place), sin(place), false); };
  const Tensor h = rms_norm(x, {kWidth}, j.parameter("layers.0.norm1.weight", {kWidth}, 0));
  const Tensor a =
      scaled_dot_product_attention(turned(heads(linear(h, w("q", kHeads * kHead, kWidth)), kHeads)),
                                   turned(heads(linear(h, w("k", kKeyHeads * kHead, kWidth)), kKeyHeads)),
                                   heads(linear(h, w("v", kKeyHeads * kHead, kWidth)), kKeyHeads), {.is_causal = true});
  x = add(x, linear(a.transpose(1, 2).reshape({kTexts, kLength, kWidth}), w("o", kWidth, kWidth)));
  const Tensor g = rms_norm(x, {kWidth}, j.parameter("layers.0.norm2.weight", {kWidth}, 0));
  x = add(x,
          linear(mul(silu(linear(g, w("gate", 32, kWidth))), linear(g, w("up", 32, kWidth))), w("down", kWidth, 32)));
  j.train(cross_entropy(linear(x, j.parameter("head.weight", {kWords, kWidth}, 0.3)).transpose(1, 2), next));
  std::mt19937 random(3);
  for (int k = 0; k < kSteps; ++k) {
    Floats in(kTexts * kLength), out(kTexts * kLength);
    for (float& v : in) v = static_cast<float>(random() % kWords);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>((static_cast<int>(in[i]) * 7 + 2) % kWords);
    j.inputs["ids"].push_back(in), j.inputs["next"].push_back(out);
  }
  return j;
}

// Tensor parallel, as Megatron-LM divides the GPT.
inline const std::vector<ShardSpec> kMegatron{{"*.q.weight", {"model"}},  {"*.k.weight", {"model"}},
                                              {"*.v.weight", {"model"}},  {"*.o.weight", {"", "model"}},
                                              {"*.up.weight", {"model"}}, {"*.down.weight", {"", "model"}},
                                              {"wte.weight", {"model"}}};

}  // namespace lc::test
