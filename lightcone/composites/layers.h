// Functions of layers from which definitions are made. Operands have the shapes and types that the functions need:
// nothing broadcasts or promotes, except by expand_to().
#pragma once

#include "lightcone/composites/definitions.h"

namespace lc::definitions {

// Expands a shape that is right-aligned with `shape` and broadcasts to it.
Tensor expand_to(Tensor t, const Shape& shape);
// Whether a shape, right-aligned, broadcasts to `to`.
bool broadcasts_to(const Shape& s, const Shape& to);
// The transpose of expand_to(): sums over the axes along which `shape` was expanded.
Tensor sum_to(Tensor t, const Shape& shape);
// The mean over the last `axes` axes, which are kept with extent 1.
Tensor mean_of_last(const Tensor& t, int axes);
// 1 / sqrt(x + eps)
Tensor reciprocal_root(const Tensor& x, double eps);
// a [..., m, k] times b [..., k, n], with equal leading axes.
Tensor matmul(const Tensor& a, const Tensor& b);
// Repeats keys or values t [..., kv, s, d] so that each head of q [..., h, s, d] has its own.
Tensor for_heads(const Tensor& t, const Tensor& q);
// The transpose of for_heads(): sums over the heads of t that share a head of the keys k.
Tensor for_keys(const Tensor& t, const Tensor& k);
// Softmax over the last axis. Its derivative is y (g - sum(g y)).
Tensor softmax(const Tensor& x);
// (x - mean) / sqrt(variance + eps) over the last `axes` axes. The derivative does not go through the statistics.
Tensor standardize(const Tensor& x, int axes, double eps);

// The attribute of norms: how many of the last axes are normalised.
inline int last_axes(const Attributes& a) { return static_cast<int>(a.integer("axes")); }
// These throw Error, to which call() adds the composite's name.
void one_float_type(std::span<const TensorType> in);
// Throws unless 1 to all of the axes of operand 0 are normalised and the other operands have their shape.
void over_last_axes(std::span<const TensorType> in, int axes);

}  // namespace lc::definitions
