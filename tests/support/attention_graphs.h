// Graphs with attention over a cache of keys and values, shared by the attention tests of all devices.
#pragma once

#include <string>

#include "lightcone/ops/ops.h"

namespace lc::test {

enum class Masked { No, Causal, Window, Bool, Bias, Both };

// Adds the input `name` for cached keys or values and returns it as f32. An int8 cache has one scale per key, the input
// `name`.scale.
inline Tensor held(Graph& g, const std::string& name, const Shape& shape, DType stored) {
  const Tensor numbers = prim::cast(g.input(name, shape, stored), DType::F32);
  if (stored != DType::I8) return numbers;
  return numbers * g.input(name + ".scale", {shape[0], shape[1], 1});
}

// Sizes of grouped-query attention: `kv` key heads, `group` query heads per key head, a cache of `context` keys, of
// which the first past + seq are read.
struct CacheSizes {
  std::int64_t kv = 2, group = 2, depth = 64, width = 64, context = 700;
};
inline Graph cached(const CacheSizes& z, Masked masked, DType stored = DType::F32, double fill = -kInf) {
  Graph g;
  const Dim seq = Dim::symbol("seq", 1, 300), past = Dim::symbol("past", 0, z.context - 300), keys = past + seq;
  const Tensor q =
      g.input("q", {seq, z.kv * z.group, z.depth}).permute({1, 0, 2}).reshape({z.kv, z.group, seq, z.depth});
  const Tensor k = held(g, "k", {z.kv, z.context, z.depth}, stored).slice(1, 0, keys).unsqueeze(1);
  const Tensor v = held(g, "v", {z.kv, z.context, z.width}, stored).slice(1, 0, keys).unsqueeze(1);
  Tensor s = matmul(q, k.transpose(2, 3)) * 0.3;
  const Shape plane{seq, keys};
  const Tensor row = g.index(plane, past + Dim::index(0, seq)), column = g.index(plane, Dim::index(1, keys));
  if (masked == Masked::Causal) s = where(column <= row, s, fill);
  if (masked == Masked::Window) s = where(logical_and(column <= row, row - column < 70.0), s, fill);
  if (masked == Masked::Bool || masked == Masked::Both)
    s = masked_fill(s, g.input("mask", {300, z.context}, DType::Bool).slice(0, 0, seq).slice(1, 0, keys), fill);
  if (masked == Masked::Bias || masked == Masked::Both)
    s = s + g.input("bias", {z.group, 1, z.context}).slice(2, 0, keys);
  g.output("y", matmul(softmax(s, -1), v));
  return g;
}

}  // namespace lc::test
