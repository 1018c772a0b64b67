// A 24-block transformer in the typed API; tests/compile_time/check.py times its compilation.
#include <cmath>

#include "lightcone/lightcone.h"

using namespace lc::typed;

constexpr int kWidth = 768, kHeads = 12, kHead = 64, kInner = 3072;
using Activations = Tensor<float, "batch", "seq", kWidth>;

struct Block {
  Tensor<float, kWidth, kWidth> q, k, v, o;
  Tensor<float, kInner, kWidth> up;
  Tensor<float, kWidth, kInner> down;
  Tensor<float, kWidth> scale1, scale2;

  auto heads(const Activations& x, const Tensor<float, kWidth, kWidth>& w) const {
    return permute<0, 2, 1, 3>(reshape<"batch", "seq", kHeads, kHead>(linear(x, w)));
  }
  Activations operator()(const Activations& x) const {
    const auto h = layer_norm(x) * scale1;
    const auto a = scaled_dot_product_attention(heads(h, q), heads(h, k), heads(h, v));
    const Activations y = x + linear(reshape<"batch", "seq", kWidth>(permute<0, 2, 1, 3>(a)), o);
    return y + linear(gelu(linear(layer_norm(y) * scale2, up)), down);
  }
};

Activations transformer(const Activations& x, const Block (&blocks)[24]) {
  Activations y = x;
  for (const Block& b : blocks) y = b(y);
  return y;
}

// 24 blocks of different widths, which share no types.
template <int I>
auto pyramid(const auto& x) {
  if constexpr (I == 0) return x;
  else {
    const auto y = gelu(matmul(x, Tensor<float, 64 + 8 * I, 64 + 8 * (I - 1)>()));
    return pyramid<I - 1>(softmax<-1>(layer_norm(y)) + y);
  }
}
Tensor<float, "batch", 64> all_widths(const Tensor<float, "batch", 64 + 8 * 24>& x) { return pyramid<24>(x); }
