// Networks to verify: those of examples/, models/ and bench/. Large ones have fewer channels.
#pragma once

#include <string>
#include <vector>

#include "lightcone/formats/block_formats.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/ops/ops.h"

namespace lc::test {

class Net {
 public:
  Tensor input(const std::string& name, Shape s) { return g_.input(name, std::move(s)); }
  Tensor parameter(const std::string& name, Shape s) { return g_.parameter(name, std::move(s), DType::F32); }
  Tensor dense(Tensor x, const std::string& name, int in, int out) {
    return linear(x, parameter(name + ".weight", {out, in}), parameter(name + ".bias", {out}));
  }
  Tensor norm(Tensor x, const std::string& name, int width) {
    return layer_norm(x, {x.extent(-1)}, parameter(name + ".weight", {width}), parameter(name + ".bias", {width}));
  }
  // Self-attention: x [1, seq, width] is projected, attends over `heads` heads, and is projected again.
  Tensor attend(Tensor x, int seq, int width, int heads, bool causal) {
    const auto split = [&](const char* name) {
      return dense(x, name, width, width).reshape({1, seq, heads, width / heads}).permute({0, 2, 1, 3});
    };
    const Tensor q = split("query"), k = split("key"), v = split("value");
    const Tensor y = scaled_dot_product_attention(q, k, v, AttentionOptions{.is_causal = causal});
    return dense(y.permute({0, 2, 1, 3}).reshape({1, seq, width}), "out", width, width);
  }
  Tensor conv_bn(Tensor x, const std::string& name, int in, int out, int kernel, int stride, int groups = 1) {
    const Tensor y = conv(x, parameter(name + ".conv", {out, in / groups, kernel, kernel}),
                          {.stride = {stride}, .padding = {kernel / 2}, .groups = groups});
    return batch_norm(y, parameter(name + ".mean", {out}), parameter(name + ".var", {out}),
                      parameter(name + ".weight", {out}), parameter(name + ".bias", {out}));
  }
  Graph done(Tensor y) {
    g_.output("y", y);
    return std::move(g_);
  }

 private:
  Graph g_;
};

inline Graph mlp(int batch = 4, int in = 784, int width = 512) {
  Net n;
  Tensor x = n.input("x", {batch, in});
  x = relu(n.dense(x, "fc1", in, width));
  x = relu(n.dense(x, "fc2", width, width));
  return n.done(n.dense(x, "fc3", width, 10));
}
inline Graph tanh_mlp() {
  Net n;
  return n.done(n.dense(tanh(n.dense(n.input("x", {8, 64}), "fc1", 64, 64)), "fc2", 64, 64));
}
inline Graph attention_alone() {  // softmax(Q K^T) V with three linear layers; no input is marked as a parameter
  Graph g;
  const Tensor x = g.input("x", {8, 64});
  const auto project = [&](const char* name) { return matmul(x, g.input(name, {64, 64})); };
  const Tensor q = project("q"), k = project("k"), v = project("v");
  g.output("y", matmul(softmax(matmul(q, k.transpose(0, 1)), 1), v));
  return g;
}
inline Graph bert(int seq = 24, int width = 96, int heads = 4) {
  Net n;
  Tensor x = n.input("x", {1, seq, width});
  x = n.norm(x + n.attend(x, seq, width, heads, false), "attention_norm", width);
  const Tensor y = n.dense(gelu(n.dense(x, "up", width, 4 * width)), "down", 4 * width, width);
  return n.done(n.norm(x + y, "output_norm", width));
}
inline Graph gpt(int seq = 17, int width = 64, int heads = 4) {
  Net n;
  Tensor x = n.input("x", {1, seq, width});
  x = x + n.attend(n.norm(x, "attention_norm", width), seq, width, heads, true);
  const Tensor y = n.dense(n.norm(x, "mlp_norm", width), "up", width, 4 * width);
  return n.done(x + n.dense(gelu(y), "down", 4 * width, width));
}
inline Graph vgg() {
  Net n;
  Tensor x = n.input("x", {1, 3, 32, 32});
  int channels = 3, k = 0;
  for (const int width : {16, 16, 0, 32, 32, 0, 48, 48, 0}) {
    if (width == 0) {
      x = max_pool(x, {2}, {2});
      continue;
    }
    const std::string name = str_cat("conv", k++);
    x = relu(conv(x, n.parameter(name + ".weight", {width, channels, 3, 3}), n.parameter(name + ".bias", {width}),
                  {.padding = {1}}));
    channels = width;
  }
  x = relu(n.dense(flatten(x, 1), "fc1", 48 * 16, 96));
  return n.done(n.dense(x, "fc2", 96, 20));
}
inline Graph resnet() {
  Net n;
  Tensor x = n.input("x", {1, 3, 32, 32});
  x = max_pool(relu(n.conv_bn(x, "stem", 3, 8, 7, 2)), {3}, {2}, {1});
  int in = 8;
  for (int stage = 0; stage < 3; ++stage)
    for (int b = 0; b < 2; ++b) {
      const std::string name = str_cat("layer", stage, ".", b);
      const int width = 8 << stage, out = width * 4, stride = stage > 0 && b == 0 ? 2 : 1;
      Tensor y = relu(n.conv_bn(x, name + ".a", in, width, 1, 1));
      y = relu(n.conv_bn(y, name + ".b", width, width, 3, stride));
      y = n.conv_bn(y, name + ".c", width, out, 1, 1);
      x = relu(y + (b == 0 ? n.conv_bn(x, name + ".down", in, out, 1, stride) : x));
      in = out;
    }
  return n.done(n.dense(mean(x, {2, 3}), "fc", in, 20));
}
inline Graph mobilenet() {
  Net n;
  Tensor x = relu6(n.conv_bn(n.input("x", {1, 3, 32, 32}), "stem", 3, 16, 3, 2));
  int in = 16;
  for (int b = 0; b < 3; ++b) {
    const std::string name = str_cat("layer", b);
    const int width = in * 3, out = b == 0 ? 24 : in, stride = b == 0 ? 2 : 1;
    Tensor y = relu6(n.conv_bn(x, name + ".a", in, width, 1, 1));
    y = relu6(n.conv_bn(y, name + ".b", width, width, 3, stride, width));
    y = n.conv_bn(y, name + ".c", width, out, 1, 1);
    x = stride == 1 && in == out ? x + y : y;
    in = out;
  }
  return n.done(n.dense(mean(x, {2, 3}), "fc", in, 20));
}
// A Llama of two layers. With a `format`, weights are stored in quantized blocks.
inline Graph llama(DType cache = DType::F32, std::optional<QuantFormat> format = {}) {
  const LlamaConfig c{.vocab = 96,
                      .hidden = 64,
                      .intermediate = 96,
                      .layers = 2,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = 16,
                      .context = 32,
                      .rope_frequencies = {1, 0.5, 0.25, 0.125, 0.1, 0.05, 0.03, 0.01}};
  return llama_graph(c, {.context = 32, .chunk = 8, .all_logits = true, .cache = cache},
                     [&](Graph& g, const std::string& path, Shape s) -> nn::Parameter {
                       if (path.ends_with(".bias") || path.ends_with("q_norm.weight") ||
                           path.ends_with("k_norm.weight") || path.starts_with("lm_head"))
                         return {};
                       const bool blocks = format && s.size() == 2 && s[1] == Dim(64);
                       return nn::parameter(g, path, std::move(s), blocks ? DType::U8 : DType::F32,
                                            blocks ? format : std::nullopt);
                     });
}
inline Graph seed_example() {
  Graph g;
  g.output("c", matmul(g.input("a", {3, 1}), g.input("b", {1, 4})));
  return g;
}
inline Graph custom_pass_example() {
  Graph g;
  const Tensor a = g.input("a", {8, 16}), b = g.input("b", {8, 16}), c = g.input("c", {8, 16});
  g.output("y", exp2(a * c + b * c));
  return g;
}
inline Graph typed_mlp_example() {
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("batch", 1, 64), 4});
  const Tensor h = relu(linear(x, g.input("w1", {8, 4})) + g.input("b1", {8}));
  g.output("y", softmax(linear(h, g.input("w2", {3, 8})) + g.input("b2", {3}), -1));
  return g;
}

}  // namespace lc::test
