// Elementwise chains and reductions of rows over 16M elements: bound by memory if everything is one pass.
#include "workload.h"

namespace lc::bench {

std::unique_ptr<Workload> make_fused(const Json& w) {
  const auto op = w.at("op").get<std::string>();
  const auto rows = w.at("rows").get<std::int64_t>(), columns = w.at("columns").get<std::int64_t>();
  Net net(w);
  const Tensor x = net.input("x", {rows, columns}, 3);
  if (op == "gelu") return net.finish(gelu(x), Net::Bound::Copy);
  if (op == "softmax") return net.finish(softmax(x, -1), Net::Bound::Copy);
  if (op == "chain")
    return net.finish(relu(x * net.parameter("w", {columns}) + net.parameter("b", {columns})) * 2 + x,
                      Net::Bound::Copy);
  const Tensor normed =
      layer_norm(x, {x.extent(-1)}, net.parameter("norm.weight", {columns}), net.parameter("norm.bias", {columns}));
  if (op == "layernorm") return net.finish(normed, Net::Bound::Copy);
  if (op == "ln_gelu_softmax") return net.finish(softmax(gelu(normed), -1), Net::Bound::Copy);
  throw Error("bench", "no fused workload is called " + op);
}

}  // namespace lc::bench
