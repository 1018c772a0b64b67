// The models that the rows `train-*` train; bench/peers/train_torch.py has the same ones with the same names.
#pragma once

#include <cmath>

#include "lightcone/nn/layers.h"
#include "lightcone/ops/ops.h"

namespace lc::bench {

using i64 = std::int64_t;

// From x [n, 784] to [n, 10].
struct Mlp {
  nn::Linear<> fc1{784, 512}, fc2{512, 512}, fc3{512, 10};
  void visit(nn::Visitor& v) { v("fc1", fc1)("fc2", fc2)("fc3", fc3); }
  Tensor operator()(const Tensor& x) const { return fc3(relu(fc2(relu(fc1(x))))); }
};

// Returns the heads [b, heads, t, width / heads] of one part of queries, keys and values [b, t, 3 width].
inline Tensor heads_of(const Tensor& qkv, i64 part, i64 heads) {
  const i64 batch = *qkv.shape()[0].constant(), tokens = *qkv.shape()[1].constant();
  const i64 width = *qkv.shape()[2].constant() / 3;
  return qkv.slice(2, part * width, (part + 1) * width)
      .reshape({batch, tokens, heads, width / heads})
      .permute({0, 2, 1, 3});
}
// From [b, heads, t, d] to [b, t, heads d].
inline Tensor joined(const Tensor& x) {
  const Shape s = x.shape();
  return x.permute({0, 2, 1, 3}).reshape({s[0], s[2], *s[1].constant() * *s[3].constant()});
}

struct GptOptions {
  i64 layers = 6, heads = 6, width = 384, context = 256, vocabulary = 65;
};
struct GptBlock {
  i64 heads;
  nn::LayerNorm<> attention_norm, mlp_norm;
  nn::Linear<> qkv, out, up, down;
  explicit GptBlock(const GptOptions& o = {})
      : heads(o.heads),
        attention_norm(o.width),
        mlp_norm(o.width),
        qkv(o.width, 3 * o.width),
        out(o.width, o.width),
        up(o.width, 4 * o.width),
        down(4 * o.width, o.width) {}
  void visit(nn::Visitor& v) {
    v("attention_norm", attention_norm)("qkv", qkv)("out", out)("mlp_norm", mlp_norm)("up", up)("down", down);
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor all = qkv(attention_norm(x));
    const Tensor y = scaled_dot_product_attention(heads_of(all, 0, heads), heads_of(all, 1, heads),
                                                  heads_of(all, 2, heads), AttentionOptions{.is_causal = true});
    const Tensor h = x + out(joined(y));
    return h + down(gelu_tanh(up(mlp_norm(h))));
  }
};
// From ids [b, context] to logits [b, context, vocabulary]. Every linear layer but the last has a bias; the last one's
// weight is not the embedding's.
struct Gpt {
  nn::Embedding<> token, position;
  std::vector<GptBlock> blocks;
  nn::LayerNorm<> norm;
  nn::Linear<> head;
  explicit Gpt(const GptOptions& o = {})
      : token(o.vocabulary, o.width),
        position(o.context, o.width),
        blocks(static_cast<std::size_t>(o.layers), GptBlock(o)),
        norm(o.width),
        head(o.width, o.vocabulary, {.bias = false}) {}
  void visit(nn::Visitor& v) {
    v("token", token)("position", position);
    for (std::size_t k = 0; k < blocks.size(); ++k) v(str_cat("blocks.", k), blocks[k]);
    v("norm", norm)("head", head);
  }
  Tensor operator()(const Tensor& ids) const {
    Tensor x = token(ids) + position.weight;
    for (const GptBlock& b : blocks) x = b(x);
    return head(norm(x));
  }
};

struct LlamaOptions {
  i64 layers = 6, heads = 6, width = 288, hidden = 768, context = 256, vocabulary = 32000;
};
// The constant angles of rotary positions: cos and sin [context, width / heads / 2].
struct Rotary {
  i64 context, pairs;
  Tensor cos, sin;
  explicit Rotary(const LlamaOptions& o = {}) : context(o.context), pairs(o.width / o.heads / 2) {}
  void visit(nn::Visitor& v) {
    v.buffer("cos", cos, {context, pairs}, table(0.5 * M_PI)).buffer("sin", sin, {context, pairs}, table(0));
  }
  static nn::Init table(double ahead) {
    return [ahead](const nn::init::Extents& s, const nn::init::Source&) {
      nn::init::Values values;
      for (i64 t = 0; t < s[0]; ++t)
        for (i64 k = 0; k < s[1]; ++k) {
          const double speed = std::pow(10000.0, -static_cast<double>(k) / static_cast<double>(s[1]));
          values.push_back(static_cast<float>(std::sin(static_cast<double>(t) * speed + ahead)));
        }
      return values;
    };
  }
};
struct LlamaBlock {
  i64 heads;
  nn::RMSNorm<> attention_norm, mlp_norm;
  nn::Linear<> qkv, out, gate, up, down;
  explicit LlamaBlock(const LlamaOptions& o = {})
      : heads(o.heads),
        attention_norm(o.width, {.eps = 1e-5}),
        mlp_norm(o.width, {.eps = 1e-5}),
        qkv(o.width, 3 * o.width, {.bias = false}),
        out(o.width, o.width, {.bias = false}),
        gate(o.width, o.hidden, {.bias = false}),
        up(o.width, o.hidden, {.bias = false}),
        down(o.hidden, o.width, {.bias = false}) {}
  void visit(nn::Visitor& v) {
    v("attention_norm", attention_norm)("qkv", qkv)("out", out);
    v("mlp_norm", mlp_norm)("gate", gate)("up", up)("down", down);
  }
  Tensor operator()(const Tensor& x, const Rotary& at) const {
    const Tensor all = qkv(attention_norm(x));
    const Tensor q = rope(heads_of(all, 0, heads), at.cos, at.sin, false);
    const Tensor k = rope(heads_of(all, 1, heads), at.cos, at.sin, false);
    const Tensor y = scaled_dot_product_attention(q, k, heads_of(all, 2, heads), AttentionOptions{.is_causal = true});
    const Tensor h = x + out(joined(y)), n = mlp_norm(h);
    return h + down(silu(gate(n)) * up(n));
  }
};
// From ids [b, context] to logits [b, context, vocabulary].
struct Llama {
  nn::Embedding<> token;
  Rotary rotary;
  std::vector<LlamaBlock> blocks;
  nn::RMSNorm<> norm;
  nn::Linear<> head;
  explicit Llama(const LlamaOptions& o = {})
      : token(o.vocabulary, o.width),
        rotary(o),
        blocks(static_cast<std::size_t>(o.layers), LlamaBlock(o)),
        norm(o.width, {.eps = 1e-5}),
        head(o.width, o.vocabulary, {.bias = false}) {}
  void visit(nn::Visitor& v) {
    v("token", token)("rotary", rotary);
    for (std::size_t k = 0; k < blocks.size(); ++k) v(str_cat("blocks.", k), blocks[k]);
    v("norm", norm)("head", head);
  }
  Tensor operator()(const Tensor& ids) const {
    Tensor x = token(ids);
    for (const LlamaBlock& b : blocks) x = b(x, rotary);
    return head(norm(x));
  }
};

struct ConvNorm {
  nn::Conv2d<> conv;
  nn::BatchNorm2d<> norm;
  ConvNorm(i64 in, i64 out, i64 kernel, int stride)
      : conv(in, out, kernel, {.stride = {stride}, .padding = {static_cast<int>(kernel) / 2}}, false), norm(out) {}
  void visit(nn::Visitor& v) { v("conv", conv)("norm", norm); }
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    return norm(conv(x), mode);
  }
};
struct BasicBlock {
  ConvNorm a, b, down;
  bool narrows;  // the shortcut has a convolution of its own
  BasicBlock(i64 in, i64 out, int stride)
      : a(in, out, 3, stride), b(out, out, 3, 1), down(in, out, 1, stride), narrows(stride != 1 || in != out) {}
  void visit(nn::Visitor& v) {
    v("a", a)("b", b);
    if (narrows) v("down", down);
  }
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    const Tensor y = b(relu(a(x, mode)), mode);
    return relu(y + (narrows ? down(x, mode) : x));
  }
};
// The usual ResNet-18 for CIFAR: x [n, 3, 32, 32] to [n, 10], with a 3x3 stem and no pool after it.
struct Resnet18 {
  ConvNorm stem{3, 64, 3, 1};
  std::vector<BasicBlock> blocks;
  nn::Linear<> fc{512, 10};
  Resnet18() {
    i64 in = 64;
    for (const i64 out : {64, 128, 256, 512})
      for (int k = 0; k < 2; ++k) blocks.emplace_back(in, out, k == 0 && out != 64 ? 2 : 1), in = out;
  }
  void visit(nn::Visitor& v) {
    v("stem", stem);
    for (std::size_t k = 0; k < blocks.size(); ++k) v(str_cat("blocks.", k), blocks[k]);
    v("fc", fc);
  }
  template <class Mode>
  Tensor operator()(const Tensor& images, Mode& mode) const {
    Tensor x = relu(stem(images, mode));
    for (const BasicBlock& b : blocks) x = b(x, mode);
    return fc(mean(x, {2, 3}));
  }
};

}  // namespace lc::bench
