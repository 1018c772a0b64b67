// Graphs to export, shared by the tests of the writer and by the cases that XLA runs (cases.cpp).
#pragma once

#include <string>
#include <vector>

#include "lightcone/autograd/autograd.h"
#include "lightcone/composites/composites.h"
#include "lightcone/ops/conv.h"
#include "lightcone/ops/loop.h"
#include "lightcone/ops/loss.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/random.h"
#include "lightcone/ops/special/special.h"
#include "lightcone/optim/optim.h"
#include "lightcone/passes/barrier.h"

namespace lc::test {

struct Named {
  std::string name;
  Graph graph;
  Bindings sizes = {};
};

inline Tensor parameter(Graph& g, const std::string& name, Shape s) {
  return g.parameter(name, std::move(s), DType::F32);
}

// Adds y and the gradients of sum(y * y) as outputs.
inline void with_gradients(Graph& g, const Tensor& y, const std::vector<Tensor>& wrt) {
  g.output("y", y);
  const std::vector<Tensor> d = gradients(sum(y * y), wrt);
  for (std::size_t k = 0; k < d.size(); ++k) g.output(str_cat("d", k), d[k]);
}

inline Graph mlp_graph() {
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("batch", 1, 64), 12});
  const Tensor w1 = parameter(g, "fc1.weight", {16, 12}), b1 = parameter(g, "fc1.bias", {16}),
               w2 = parameter(g, "fc2.weight", {10, 16});
  with_gradients(g, linear(relu(linear(x, w1, b1)), w2), {w1, b1, w2});
  return g;
}

inline Graph conv_graph(const Shape& image, const Shape& filter, const ConvOptions& o) {
  Graph g;
  const Tensor x = g.input("x", image), w = parameter(g, "w", filter);
  with_gradients(g, conv(x, w, o), {x, w});
  return g;
}

inline Graph transposed_conv_graph() {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 5, 6}), w = parameter(g, "w", {4, 3, 3, 3});
  with_gradients(g, conv_transpose(x, w, {.stride = {2}, .padding = {1}, .output_padding = {1}}), {x, w});
  return g;
}

inline Graph pool_graph(bool max, std::vector<int> kernel, std::vector<int> stride, std::vector<int> padding) {
  Graph g;
  const Tensor x = g.input("x", {2, 3, 9, 8});
  const Tensor y = max ? max_pool(x, std::move(kernel), std::move(stride), std::move(padding))
                       : avg_pool(x, std::move(kernel), std::move(stride), std::move(padding));
  with_gradients(g, y, {x});
  return g;
}

inline Graph cnn_graph(const Dim& batch) {
  Graph g;
  const Tensor x = g.input("x", {batch, 3, 16, 16});
  const Tensor w1 = parameter(g, "conv1.weight", {8, 3, 3, 3}), b1 = parameter(g, "conv1.bias", {8}),
               w2 = parameter(g, "conv2.weight", {8, 8, 3, 3}), w3 = parameter(g, "fc.weight", {10, 128});
  Tensor h = max_pool(relu(conv(x, w1, b1, {.padding = {1}})), {2});
  h = max_pool(relu(conv(h, w2, {.padding = {1}})), {2});
  const Tensor logits = linear(h.reshape({batch, 128}), w3);
  const Tensor loss = cross_entropy(logits, g.input("label", {batch}, DType::I64));
  g.output("loss", loss);
  const std::vector<Tensor> d = gradients(loss, {w1, b1, w2, w3});
  for (std::size_t k = 0; k < d.size(); ++k) g.output(str_cat("d", k), d[k]);
  return g;
}

inline Graph resnet_block_graph(const Dim& batch) {
  Graph g;
  const Tensor x = g.input("x", {batch, 4, 8, 8});
  std::vector<Tensor> all;
  const auto param = [&](const char* name, Shape s) { return all.emplace_back(parameter(g, name, std::move(s))); };
  const auto norm = [&](const Tensor& t, const char* weight, const char* bias) {
    const Dim n = t.extent(1);
    const Tensor m = mean(t, {0, 2, 3}, true), v = mean((t - m) * (t - m), {0, 2, 3}, true);
    return (t - m) / sqrt(v + 1e-5) * param(weight, {n}).reshape({1, n, 1, 1}) + param(bias, {n}).reshape({1, n, 1, 1});
  };
  Tensor h = conv(x, param("conv1", {8, 4, 3, 3}), {.stride = {2}, .padding = {1}});
  h = relu(norm(h, "bn1.weight", "bn1.bias"));
  h = norm(conv(h, param("conv2", {8, 8, 3, 3}), {.padding = {1}}), "bn2.weight", "bn2.bias");
  const Tensor shortcut = norm(conv(x, param("down", {8, 4, 1, 1}), {.stride = {2}}), "bn3.weight", "bn3.bias");
  with_gradients(g, relu(h + shortcut), all);
  return g;
}

// Pre-norm attention with a causal mask, and a feed-forward network.
inline Graph transformer_graph(bool gradient, const Dim& batch, const Dim& seq) {
  Graph g;
  constexpr int kWidth = 16, kHeads = 2;
  const Tensor ids = g.input("ids", {batch, seq}, DType::I64);
  std::vector<Tensor> all;
  const auto param = [&](const char* name, Shape s) { return all.emplace_back(parameter(g, name, std::move(s))); };
  const auto norm = [&](const Tensor& t, const char* weight, const char* bias) {
    return layer_norm(t, {kWidth}, param(weight, {kWidth}), param(bias, {kWidth}));
  };
  Tensor x = embedding(ids, param("embedding", {20, kWidth}));
  const Tensor h = norm(x, "norm1.weight", "norm1.bias");
  const auto heads = [&](const char* name) {
    return linear(h, param(name, {kWidth, kWidth}))
        .reshape({batch, seq, kHeads, kWidth / kHeads})
        .permute({0, 2, 1, 3});
  };
  const Tensor q = heads("q"), k = heads("k"), v = heads("v");
  const Tensor a = scaled_dot_product_attention(q, k, v, AttentionOptions{.is_causal = true});
  x = x + linear(a.permute({0, 2, 1, 3}).reshape({batch, seq, kWidth}), param("o", {kWidth, kWidth}));
  const Tensor up = linear(norm(x, "norm2.weight", "norm2.bias"), param("up", {32, kWidth}));
  x = x + linear(gelu(up), param("down", {kWidth, 32}));
  const Tensor loss = mean(x * x);
  g.output("y", x);
  if (!gradient) return g;
  const std::vector<Tensor> d = gradients(loss, all);
  for (std::size_t i = 0; i < d.size(); ++i) g.output(str_cat("d", i), d[i]);
  return g;
}

inline Graph indexing_graph(const Dim& rows) {
  Graph g;
  const Tensor table = parameter(g, "table", {9, 4}), ids = g.input("ids", {rows, 5}, DType::I64);
  const Tensor x = g.input("x", {rows, 7}), places = g.input("places", {rows, 3}, DType::I32),
               src = g.input("src", {rows, 3});
  const Tensor e = embedding(ids, table);
  g.output("embedding", e);
  g.output("d table", gradient(sum(e * e), table));
  g.output("gather", prim::gather(x, places, 1));
  g.output("scatter", prim::scatter(x, places, src, 1));
  g.output("scatter_add", prim::scatter_add(x, places, src, 1));
  g.output("slice_scatter", prim::slice_scatter(x, src, 1, 2));
  g.output("argsort", prim::argsort(x, 0));
  const Sorted top = topk(x, 3);
  g.output("values", top.values), g.output("indices", top.indices);
  g.output("concat", concat({x, src, x.slice(1, 0, 2)}, 1));
  g.output("reflect", pad(x, 1, 2, 3, PadMode::Reflect));
  g.output("cumsum", cumsum(x, 1));
  g.output("tril", tril(x));
  g.output("windows", x.unfold(1, 3, 2, 1));
  g.output("by columns", prim::gather(x.t(), places.t(), 0));
  g.output("upside down", x.flip(0));
  g.output("one row", x.select(0, 0));
  g.output("every other", x.slice(0, 0, rows, 2));
  g.output("rows joined", concat({x, x * 2}, 0));
  return g;
}

inline Graph scan_graph(bool reverse, const Dim& batch) {
  Graph g;
  const Tensor xs = g.input("xs", {6, 4, batch}), w = parameter(g, "w", {4, 4}), h = g.input("h", {4, batch});
  const Scanned r = scan(
      [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) {
        const Tensor next = tanh(matmul(w, s[0]) + x[0]);
        return Scanned{.state = {next}, .ys = {next * 2}};
      },
      {h}, {xs}, {.reverse = reverse});
  g.output("ys", r.ys[0]), g.output("last", r.state[0]);
  const std::vector<Tensor> d = gradients(sum(r.ys[0] * r.ys[0]), {w, h, xs});
  for (std::size_t k = 0; k < d.size(); ++k) g.output(str_cat("d", k), d[k]);
  return g;
}

// Halves x until it is below 1.
inline Graph while_graph(std::int64_t most = 40) {
  Graph g;
  const auto r = while_loop([](const std::vector<Tensor>& s) { return prim::less_than(full_like(s[0], 1), s[0]); },
                            [](const std::vector<Tensor>& s) {
                              return std::vector<Tensor>{s[0] * 0.5, s[1] + 1, s[2]};
                            },
                            {g.input("x", {}), g.input("n", {3}, DType::I64), g.input("same", {2})}, most);
  g.output("x", r[0] + 0.0), g.output("steps", r[1]), g.output("as it was", r[2]);
  return g;
}

inline Graph random_numbers_graph(const Dim& rows) {
  Graph g;
  Random random(g, 42);
  g.output("bits", random.bits({rows, 7}));
  g.output("uniform", random.uniform({rows, 5}));
  g.output("dropped", random.dropout(g.input("x", {rows, 5}), 0.4));
  g.output("given", random_bits(g.input("step", {}, DType::I64), {9}, -7, 3));
  return g;
}

inline Graph training_graph(const Dim& batch) {
  Graph g;
  const Tensor x = g.input("x", {batch, 6}), w1 = parameter(g, "w1", {12, 6}), b1 = parameter(g, "b1", {12}),
               w2 = parameter(g, "w2", {3, 12});
  const Tensor loss = cross_entropy(linear(gelu(linear(x, w1, b1)), w2), g.input("label", {batch}, DType::I64));
  const auto d = gradients(loss, {w1, b1, w2});
  optim::step(optim::AdamW{.lr = 1e-2}, {{w1, d[0]}, {b1, d[1]}, {w2, d[2]}});
  g.output("loss", loss);
  return g;
}

// New keys are appended to a cache, and queries attend to all keys. The number of cached keys appears in no argument's
// shape.
inline Graph cache_graph() {
  Graph g;
  const Dim past = Dim::symbol("past", 0, 12), n = Dim::symbol("n", 1, 4);
  const Tensor cache = g.input("cache", {16, 8}), fresh = g.input("fresh", {n, 8}), q = g.input("q", {n, 8});
  const Tensor all = prim::slice_scatter(cache, fresh, 0, past);
  const Tensor keys = all.slice(0, 0, past + n);
  const Tensor scores = matmul(q, keys.t());
  const Tensor seen = g.index({n, past + n}, less(Dim::index(1, past + n), Dim::index(0, n) + past + 1), DType::Bool);
  g.output("cache", all);
  g.output("y", matmul(softmax(where(seen, scores, full_like(scores, -1e9)), 1), keys));
  return g;
}

inline Graph halves_graph() {
  Graph g;
  const Tensor x = g.input("x", {4, 8}, DType::BF16), w = g.input("w", {8, 5}, DType::BF16),
               h = g.input("h", {4, 8}, DType::F16);
  g.output("product", matmul(x, w));
  g.output("wide", matmul(prim::cast(x, DType::F32), prim::cast(w, DType::F32)));
  g.output("sum", sum(h, {1}));
  g.output("largest", amax(h, {0}));
  return g;
}

inline Graph whole_numbers_graph() {
  Graph g;
  const Tensor a = g.input("a", {40}, DType::I32), b = g.input("b", {40}, DType::I32), x = g.input("x", {40});
  g.output("div", prim::div(a, b)), g.output("mod", prim::mod(a, b)), g.output("pow", prim::pow(a, b));
  g.output("and", bitwise_and(a, b)), g.output("or", bitwise_or(a, b)), g.output("xor", bitwise_xor(a, b));
  g.output("u64", prim::cast(a, DType::U64)), g.output("i16", prim::cast(a, DType::I16));
  g.output("bits", prim::bitcast(x, DType::U32));
  g.output("i8", prim::cast(x, DType::I8)), g.output("u8", prim::cast(a, DType::U8));
  g.output("bool", prim::cast(x, DType::Bool));
  g.output("large", g.constant(std::int64_t{9007199254740993}, DType::I64));
  return g;
}

inline Graph dequantize_graph() {
  Graph g;
  const Tensor w = g.input("w", {3, 2 * info(QuantFormat::Q4_0).bytes}, DType::U8);
  g.output("y", linear(g.input("x", {2, 64}), prim::dequantize(w, QuantFormat::Q4_0)));
  return g;
}

// A second derivative, and a value that is computed twice.
inline Graph second_order_graph() {
  Graph g;
  const Tensor x = g.input("x", {5}), w = g.input("w", {4, 5});
  const Tensor loss = sum(pow(tanh(matmul(w, x)), 2.0));
  const Tensor d = gradient(loss, w);
  g.output("dd", gradient(sum(d * d), x));
  g.output("again", behind_barrier(x) * 2);
  return g;
}

inline std::vector<Named> named_graphs() {
  std::vector<Named> all;
  const auto add = [&](const char* name, Graph g, Bindings sizes = {}) {
    all.push_back({name, std::move(g), std::move(sizes)});
  };
  const Dim batch = Dim::symbol("batch", 1, 9), seq = Dim::symbol("seq", 1, 32), rows = Dim::symbol("rows", 1, 6);
  add("mlp", mlp_graph(), {{"batch", 7}});
  add("cnn_of_batch", cnn_graph(batch), {{"batch", 3}});
  add("resnet_block_of_batch", resnet_block_graph(batch), {{"batch", 3}});
  add("conv1d_of_length", conv_graph({2, 4, seq}, {6, 4, 3}, {.stride = {2}, .padding = {1}}), {{"seq", 11}});
  add("conv2d_of_height", conv_graph({batch, 3, seq, 7}, {4, 3, 3, 3}, {.padding = {1}}), {{"batch", 2}, {"seq", 6}});
  add("transformer_of_sizes", transformer_graph(false, batch, seq), {{"batch", 3}, {"seq", 7}});
  add("transformer_gradient_of_sizes", transformer_graph(true, batch, seq), {{"batch", 2}, {"seq", 5}});
  add("indexing_of_rows", indexing_graph(rows), {{"rows", 5}});
  add("scan_of_batch", scan_graph(false, batch), {{"batch", 3}});
  add("random_numbers_of_rows", random_numbers_graph(rows), {{"rows", 5}});
  add("training_step_of_batch", training_graph(batch), {{"batch", 5}});
  add("cache", cache_graph(), {{"past", 5}, {"n", 3}});
  add("conv1d", conv_graph({2, 4, 11}, {6, 4, 3}, {.stride = {2}, .padding = {1}}));
  add("conv2d", conv_graph({2, 3, 8, 7}, {4, 3, 3, 3}, {.padding = {1}}));
  add("conv2d_strided", conv_graph({2, 3, 9, 8}, {4, 3, 3, 3}, {.stride = {2, 3}, .padding = {1, 0}}));
  add("conv2d_dilated", conv_graph({2, 3, 9, 8}, {4, 3, 3, 2}, {.padding = {2, 1}, .dilation = {2, 1}}));
  add("conv2d_groups", conv_graph({2, 6, 7, 7}, {4, 3, 3, 3}, {.padding = {1}, .groups = 2}));
  add("conv2d_depthwise", conv_graph({2, 4, 7, 7}, {4, 1, 3, 3}, {.padding = {1}, .groups = 4}));
  add("conv2d_of_one", conv_graph({2, 4, 5, 5}, {3, 4, 1, 1}, {}));
  add("conv2d_patches", conv_graph({2, 3, 8, 8}, {5, 3, 4, 4}, {.stride = {4}}));
  add("conv3d", conv_graph({1, 2, 5, 6, 5}, {3, 2, 3, 2, 3}, {.stride = {1, 2, 1}, .padding = {1, 0, 1}}));
  add("conv_transpose", transposed_conv_graph());
  add("max_pool", pool_graph(true, {2}, {2}, {0}));
  add("max_pool_overlapping", pool_graph(true, {3}, {2}, {1}));
  add("avg_pool", pool_graph(false, {2}, {2}, {0}));
  add("avg_pool_overlapping", pool_graph(false, {3, 2}, {1, 2}, {1, 0}));
  add("cnn", cnn_graph(2));
  add("resnet_block", resnet_block_graph(2));
  add("transformer", transformer_graph(false, 2, 10));
  add("transformer_gradient", transformer_graph(true, 2, 10));
  add("indexing", indexing_graph(4));
  add("scan", scan_graph(false, 1));
  add("scan_reversed", scan_graph(true, 1));
  add("while", while_graph());
  add("random_numbers", random_numbers_graph(3));
  add("training_step", training_graph(8));
  add("halves", halves_graph());
  add("whole_numbers", whole_numbers_graph());
  add("dequantize", dequantize_graph());
  add("second_order", second_order_graph());
  return all;
}

}  // namespace lc::test
