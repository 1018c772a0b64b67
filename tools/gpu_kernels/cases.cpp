#include "cases.h"

#include "bench/runner/train_models.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/models/vgg/vgg.h"
#include "lightcone/ops/conv.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"

namespace lc::gpu_kernels {
namespace {

// ---- models -----------------------------------------------------------------------------------

Graph story(const std::string& file) {
  return Llama::load(file, {.compiler = generic(), .load_weights = false}).program().graph().clone();
}

LlamaConfig llama3_8b(std::int64_t layers) {
  LlamaConfig c = LlamaConfig::tinyllama();
  c.vocab = 128256, c.hidden = 4096, c.intermediate = 14336, c.layers = layers;
  c.heads = 32, c.kv_heads = 8, c.head_dim = 128, c.context = 8192, c.rope_theta = 500000;
  c.rope_frequencies.assign(static_cast<std::size_t>(c.head_dim / 2), 1.0);
  return c;
}

// Builds one layer between the embedding and the logits. Matrices are stored as bf16 or in blocks, norms as f32.
Graph llama_layer(std::optional<QuantFormat> quant) {
  const auto parameters = [&](Graph& g, const std::string& path, Shape shape) -> nn::Parameter {
    if (path.ends_with("bias") || path.find("q_norm") != std::string::npos || path.find("k_norm") != std::string::npos)
      return {};
    if (shape.size() == 1) return nn::parameter(g, path, std::move(shape), DType::F32);
    return nn::parameter(g, path, std::move(shape), DType::BF16, quant);
  };
  return llama_graph(llama3_8b(1), {.context = 8192, .chunk = 512, .cache = DType::BF16}, parameters);
}

// Builds a block of GPT-2 small, 8 texts of 1,024 tokens: forward, backward, AdamW.
Graph gpt2_block() {
  const bench::GptOptions o{.layers = 1, .heads = 12, .width = 768, .context = 1024};
  Graph g;
  nn::Model<bench::GptBlock> net(g, bench::GptBlock(o));
  const Tensor x = g.input("x", {8, o.context, o.width}), y = g.input("y", {8, o.context, o.width});
  auto loss = trace(
      net, [](auto& net, const Tensor& x, const Tensor& y) { return mse_loss(net(x), y); }, x, y);
  loss.loss().retrieve("loss");
  update(net, optim::AdamW{.lr = 1e-3, .weight_decay = 0.1}, backward(std::move(loss)));
  return g;
}

Graph vgg() {
  Graph g;
  nn::Model<VGG> net(g, VGG({.depth = 11}));
  net(g.input("pictures", {16, 3, 224, 224})).retrieve("logits");
  return g;
}

// ---- single functions -------------------------------------------------------------------------

using Build = std::function<void(Graph& g)>;

Case function(std::string name, Build build) {
  return {std::move(name), [build = std::move(build)] {
            Graph g;
            build(g);
            return g;
          }};
}

Case one(std::string name, Shape shape, DType type, std::function<Tensor(const Tensor&)> f) {
  return function(std::move(name), [=](Graph& g) { g.output("y", f(g.input("x", shape, type))); });
}

constexpr std::int64_t kRows = 8192, kColumns = 4096, kOdd = 4099;

void add_elementwise(std::vector<Case>& all) {
  const Shape s{kRows, kColumns};
  for (const DType t : {DType::F32, DType::BF16, DType::F16}) {
    const std::string type = str_cat("elementwise ", info(t).name, ": ");
    all.push_back(one(type + "gelu", s, t, [](const Tensor& x) { return gelu(x); }));
    all.push_back(
        function(type + "swiglu", [=](Graph& g) { g.output("y", silu(g.input("gate", s, t)) * g.input("up", s, t)); }));
    all.push_back(
        function(type + "bias", [=](Graph& g) { g.output("y", g.input("x", s, t) + g.input("b", {kColumns}, t)); }));
  }
  all.push_back(one("elementwise f32: to bf16", s, DType::F32, [](const Tensor& x) { return to(x, DType::BF16); }));
  all.push_back(one("elementwise bf16: to f32", s, DType::BF16, [](const Tensor& x) { return to(x, DType::F32); }));
  all.push_back(one("elementwise i8: to f32", s, DType::I8, [](const Tensor& x) { return to(x, DType::F32); }));
  all.push_back(function("elementwise f32: where", [=](Graph& g) {
    g.output("y", where(g.input("c", s, DType::Bool), g.input("a", s), g.input("b", s)));
  }));
  all.push_back(
      one("elementwise f32: rows of odd length", {kRows, kOdd}, DType::F32, [](const Tensor& x) { return silu(x); }));
  all.push_back(function("elementwise f32: rows of a length known when it runs", [](Graph& g) {
    const Dim n = Dim::symbol("n", 1, kColumns);
    g.output("y", silu(g.input("x", {kRows, n})));
  }));
  all.back().uses = {{"", {{"n", kColumns}}}};
  all.push_back(one("moved f32: transposed", s, DType::F32, [](const Tensor& x) { return x.transpose(0, 1) * 2.0; }));
  all.push_back(one("moved f32: heads", {8, 1024, 12, 64}, DType::F32, [](const Tensor& x) {
    return x.permute({0, 2, 1, 3}) * 2.0;
  }));
  all.push_back(one("moved f32: half of each row", s, DType::F32,
                    [](const Tensor& x) { return x.slice(1, kColumns / 2, kColumns) * 2.0; }));
  all.push_back(function("moved f32: joined", [=](Graph& g) {
    g.output("y", concat({g.input("a", s), g.input("b", s)}, 1));
  }));
  all.push_back(function("moved f32: embedding", [](Graph& g) {
    g.output("y", embedding(g.input("ids", {kRows}, DType::I64), g.input("w", {50257, 768})));
  }));
}

void add_rows(std::vector<Case>& all) {
  for (const DType t : {DType::F32, DType::BF16}) {
    const std::string type(info(t).name);
    for (const std::int64_t n : {std::int64_t{128}, std::int64_t{1024}, kColumns, std::int64_t{50257}})
      all.push_back(one(str_cat("softmax ", type, ": rows of ", n), {kRows, n}, t,
                        [](const Tensor& x) { return softmax(x, 1); }));
    all.push_back(
        one("softmax " + type + ": columns", {kRows, kColumns}, t, [](const Tensor& x) { return softmax(x, 0); }));
    for (const std::int64_t n : {std::int64_t{768}, kColumns}) {
      all.push_back(function(str_cat("layer norm ", type, ": rows of ", n), [=](Graph& g) {
        g.output("y", layer_norm(g.input("x", {kRows, n}, t), Shape{n}, g.input("w", {n}, t), g.input("b", {n}, t)));
      }));
      all.push_back(function(str_cat("rms norm ", type, ": rows of ", n), [=](Graph& g) {
        g.output("y", rms_norm(g.input("x", {kRows, n}, t), Shape{n}, g.input("w", {n}, t)));
      }));
    }
  }
}

void add_reductions(std::vector<Case>& all) {
  const Shape s{kRows, kColumns};
  for (const DType t : {DType::F32, DType::BF16}) {
    const std::string type = str_cat("reduction ", info(t).name, ": ");
    all.push_back(one(type + "sums of rows", s, t, [](const Tensor& x) { return sum(x, 1); }));
    all.push_back(one(type + "sums of columns", s, t, [](const Tensor& x) { return sum(x, 0); }));
    all.push_back(one(type + "sum of all", s, t, [](const Tensor& x) { return sum(x); }));
    all.push_back(one(type + "largest of rows", s, t, [](const Tensor& x) { return amax(x, 1); }));
    all.push_back(one(type + "largest of columns", s, t, [](const Tensor& x) { return amax(x, 0); }));
    all.push_back(one(type + "largest of all", s, t, [](const Tensor& x) { return amax(x); }));
    all.push_back(one(type + "sums along the middle", {64, 512, 1024}, t, [](const Tensor& x) { return sum(x, 1); }));
    all.push_back(one(type + "sums of short rows", {1 << 20, 32}, t, [](const Tensor& x) { return sum(x, 1); }));
    all.push_back(one(type + "sums of channels", {32, 64, 56, 56}, t, [](const Tensor& x) {
      return sum(x, {0, 2, 3});
    }));
  }
  all.push_back(
      one("reduction f32: where the largest stand", s, DType::F32, [](const Tensor& x) { return argmax(x, 1); }));
  all.push_back(
      one("reduction f32: running sums", {64, kColumns}, DType::F32, [](const Tensor& x) { return cumsum(x, 1); }));
  all.push_back(one("reduction f32: running sums of a million", {1 << 20}, DType::F32,
                    [](const Tensor& x) { return cumsum(x, 0); }));
}

// Adds depthwise convolutions of 96 channels, in PyTorch's layout and with channels last.
void add_depthwise(std::vector<Case>& all) {
  for (const int stride : {1, 2}) {
    const auto convolved = [=](Graph& g, const Tensor& x) {
      return conv2d(x, g.input("w", {96, 1, 3, 3}), g.input("b", {96}), stride, 1, 1, 96);
    };
    all.push_back(function(str_cat("depthwise f32: 3 x 3, stride ", stride), [=](Graph& g) {
      g.output("y", convolved(g, g.input("x", {32, 96, 56, 56})));
    }));
    all.push_back(function(str_cat("depthwise f32: channels last, stride ", stride), [=](Graph& g) {
      g.output("y", convolved(g, g.input("x", {32, 56, 56, 96}).permute({0, 3, 1, 2})).permute({0, 2, 3, 1}));
    }));
  }
}

// Adds the same in the form of imported programs, with results whose channels are last.
void add_depthwise_last(std::vector<Case>& all) {
  all.push_back(function("depthwise f32: channels last, in and out", [](Graph& g) {
    const Tensor x = g.input("x", {32, 56, 56, 96}), w = g.input("w", {3, 3, 96});
    const Tensor windows = x.pad(1, 1, 1).pad(2, 1, 1).unfold(1, 3).unfold(2, 3);
    const Tensor filters = w.permute({2, 0, 1}).reshape({1, 1, 1, 96, 3, 3}).expand(windows.shape());
    const Shape rows{32, 56, 56, 96, 9};
    const Tensor y = prim::sum_reduce(prim::mul(windows.reshape(rows), filters.reshape(rows)), 4);
    g.output("y", y.reshape({32, 56, 56, 96}) + g.input("b", {96}));
  }));
}

// Adds products of types that matrix instructions take directly, with and without an epilogue.
void add_products(std::vector<Case>& all) {
  const Shape s{kColumns, kColumns};
  for (const DType t : {DType::BF16, DType::F16})
    all.push_back(function(str_cat("product ", info(t).name, ": with gelu"), [=](Graph& g) {
      g.output("y", gelu(matmul(g.input("x", s, t), g.input("w", s, t)) + g.input("b", {kColumns}, t)));
    }));
  for (const DType t : {DType::F8E4M3FN, DType::F8E5M2})
    all.push_back(function(str_cat("product ", info(t).name, ": of a linear layer"), [=](Graph& g) {
      g.output("y", matmul(to(g.input("x", s, t), DType::F32), to(g.input("w", s, t), DType::F32).transpose(0, 1)));
    }));
  all.push_back(function("product i8: sums of 32 bits", [=](Graph& g) {
    const auto widened = [&](const char* name) { return to(g.input(name, s, DType::I8), DType::I32); };
    g.output("y", matmul(widened("x"), widened("w")));
  }));
  all.push_back(function("product i8: of a linear layer", [=](Graph& g) {
    const auto widened = [&](const char* name) { return to(g.input(name, s, DType::I8), DType::I32); };
    g.output("y", matmul(widened("x"), widened("w").transpose(0, 1)));
  }));
}

// Adds attention of GPT-2's sizes, with a mask that all heads share (its block has a causal one), and of Llama's heads.
void add_attention(std::vector<Case>& all) {
  const auto attention = [](Graph& g, std::int64_t head, bool derivative) {
    const bool masked = head == 64;
    const Shape s{8, 12, 1024, head};
    const Tensor q = g.input("q", s), k = g.input("k", s), v = g.input("v", s);
    const Tensor y = scaled_dot_product_attention(
        q, k, v,
        {.attn_mask = masked ? g.input("mask", {1, 1, 1024, 1024}, DType::Bool) : Tensor(), .is_causal = !masked});
    if (!derivative) return g.output("y", y);
    const std::vector<Tensor> d = vjp({y}, {q, k, v}, {g.input("gradient", s)});
    g.output("dq", d[0]), g.output("dk", d[1]), g.output("dv", d[2]);
  };
  all.push_back(function("attention f32: with a mask", [=](Graph& g) { attention(g, 64, false); }));
  all.push_back(function("attention f32: derivative with a mask", [=](Graph& g) { attention(g, 64, true); }));
  all.push_back(function("attention f32: heads of 128", [=](Graph& g) { attention(g, 128, false); }));
  all.push_back(function("attention f32: derivative of heads of 128", [=](Graph& g) { attention(g, 128, true); }));
}

void add_sorts(std::vector<Case>& all) {
  all.push_back(one("order f32: of rows", {kRows, 128}, DType::F32, [](const Tensor& x) { return argsort(x, 1); }));
  all.push_back(one("order f32: of a million", {1 << 20}, DType::F32, [](const Tensor& x) { return argsort(x, 0); }));
  all.push_back(
      one("order i64: of columns", {kColumns, 256}, DType::I64, [](const Tensor& x) { return argsort(x, 0); }));
  all.push_back(function("order f32: gradient of an embedding", [](Graph& g) {
    const Tensor ids = g.input("ids", {kRows}, DType::I64), gradient = g.input("gradient", {kRows, 768});
    g.output("y", index_add(g.input("w", {50257, 768}), 0, ids, gradient));
  }));
}

void add_optimisers(std::vector<Case>& all) {
  const auto add = [&](const std::string& name, const optim::Optimizer& o, DType t) {
    all.push_back(function("optimiser " + name, [=](Graph& g) {
      const Shape s{kColumns, kColumns};
      optim::step(o, {{g.input("w", s, t), g.input("gradient", s, t)}});
    }));
  };
  add("f32: AdamW", optim::AdamW{}, DType::F32);
  add("bf16: AdamW", optim::AdamW{}, DType::BF16);
  add("f32: SGD with momentum", optim::SGD{.momentum = 0.9}, DType::F32);
  add("f32: Lion", optim::Lion{}, DType::F32);
}

}  // namespace

std::vector<Case> all_cases(const std::string& story_model) {
  const Bindings decode{{"seq", 1}, {"past", 1000}}, prefill{{"seq", 512}, {"past", 0}};
  std::vector<Case> all;
  all.push_back({"story",
                 [=] { return story(story_model); },
                 {{"decode", {{"seq", 1}, {"past", 100}}}, {"prefill", {{"seq", 128}, {"past", 0}}}}});
  all.push_back({"Llama-3-8B layer, bf16", [] { return llama_layer({}); }, {{"decode", decode}, {"prefill", prefill}}});
  all.push_back({"Llama-3-8B layer, Q8_0",
                 [] { return llama_layer(QuantFormat::Q8_0); },
                 {{"decode", decode}, {"prefill", prefill}}});
  all.push_back({"GPT-2 block, training", gpt2_block});
  all.push_back({"VGG-11", vgg});
  add_elementwise(all);
  add_rows(all);
  add_reductions(all);
  add_depthwise(all);
  add_depthwise_last(all);
  add_products(all);
  add_attention(all);
  add_sorts(all);
  add_optimisers(all);
  return all;
}

}  // namespace lc::gpu_kernels
