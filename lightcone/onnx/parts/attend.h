// Attention as the operators of several domains describe it: heads, caches, masks, and what they give out.
#pragma once

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {

struct Attend {
  Tensor q, k, v;       // [b, h, s, d], [b, kv, t, d], [b, kv, t, e]; kv divides h
  Tensor keep = {};     // bool, broadcasts to [b, h, s, t]: true where a query may attend to a key
  Tensor bias = {};     // a number that is added to each score; broadcasts as `keep`
  bool causal = false;  // query i attends to keys up to i + offset
  Dim offset = 0;
  std::int64_t window = -1;  // with causal: query i attends to this many keys, itself among them; -1: to all
  double scale = 1, softcap = 0;
  bool zero_rows = false;  // a query without a key gives 0, where a softmax of nothing would be NaN
  bool double_softmax = false;
  Tensor sink = {};  // [h]: the score of one more key, whose value is 0
};
struct Attended {
  Tensor y;  // [b, h, s, e]
  // The scores as a product, with softcap, with masks, and as probabilities; undefined unless they were asked for.
  Tensor product = {}, capped = {}, masked = {}, probabilities = {};
};
// `scores`: whether the scores are wanted. Without them, and without softcap, this is
// scaled_dot_product_attention().
Attended attend(Call& c, const Attend& a, bool scores = false);

Tensor split_heads(const Tensor& x, const Dim& heads);  // [b, s, h d] -> [b, h, s, d]
Tensor join_heads(const Tensor& x);                     // [b, h, s, d] -> [b, s, h d]
// Whether query i may attend to key j <= i + offset, and, with a window, j > i + offset - window: [s, t] as bool.
Tensor causal_mask(Graph& g, const Dim& s, const Dim& t, const Dim& offset, std::int64_t window = -1);

// Rotates the first `width` elements of x [b, h, s, d]; cos and sin are [.., s, width / 2], or tables [rows, width / 2]
// if there are positions [b, s].
Tensor rotated(Call& c, const Tensor& x, Tensor cos, Tensor sin, const Tensor& positions, std::int64_t width,
               bool interleaved);

}  // namespace lc::onnx
