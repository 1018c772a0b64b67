// The built-in composites. Some move elements: arithmetic can define that, but a device does it better with a kernel of
// its own. The others are layers of networks, which graphs keep by name for exporters, printers and devices. Each
// composite has a file with its shape inference, definition, gradient and reference rule. A device lists its kernels in
// its library.cpp.
#pragma once

#include <optional>

#include "lightcone/core/composite.h"
#include "lightcone/formats/block_formats.h"

namespace lc {

// The composites as values. is(node, builtin::gather()) recognises a node. Each comment lists the attributes.
namespace builtin {
const CompositeRef& gather();         // axis
const CompositeRef& scatter();        // axis
const CompositeRef& scatter_add();    // axis
const CompositeRef& slice_scatter();  // axis, start
const CompositeRef& argsort();        // axis, descending
const CompositeRef& dequantize();     // format
// Rows x [n, k] times the matrices [count, m, k] that an index [n] chooses, transposed: y[i] = W[index[i]] x[i],
// [n, m], as a mixture of experts multiplies. Matrices are floating numbers or, with a format of block_formats.h, u8
// blocks along the last axis. A row whose index is out of range is zero.
const CompositeRef& gather_mm();  // format: a QuantFormat, or -1
// Identity on an index that must lie in [0, below); passes/index_checks.h makes programs check it.
const CompositeRef& index_in_range();  // below
// Maps a step (i64 scalar), the integer attributes "seed" and "stream" and the extents of a shape, in order, to i32 of
// that shape. Element e in row-major order is word e % 4 of the Philox block with this counter, lowest word first:
//   (e / 4) mod 2^32,   e / 4 / 2^32,   step mod 2^32,   step / 2^32
// under the key of seed and stream. The words are raw: all 2^32 patterns, as signed numbers.
const CompositeRef& random_bits();

// softmax(scale q k^T, masked) v of q [..., h, s, d], k [..., kv, t, d] and v [..., kv, t, e], all of one floating type
// and with equal leading axes, if any; kv divides h (grouped queries). The result is [..., h, s, e]. A fourth operand
// is a mask that broadcasts to [..., h, s, t]: bool (true: attend), or floating, which is added to the scores. With
// causal, query i attends to the keys 0 to i. A query that attends to no key gives NaN.
const CompositeRef& attention();  // scale, causal (0 or 1)
// The derivative of attention: q, k, v, the cotangent of the result and, if given, the bool mask, to the cotangents of
// q, k and v. The definition materializes the probabilities; a kernel need not.
const CompositeRef& attention_gradients();  // scale, causal
// Norms of x, times a weight and plus a bias if they are given; the operands have one floating type. The composites
// from here on are transparent.
const CompositeRef& layer_norm();  // axes (how many of the last), eps; x, weight, bias: [the last axes]
const CompositeRef& rms_norm();    // axes, eps; x / sqrt(mean(x^2) + eps), weight
const CompositeRef& group_norm();  // groups, eps; x [n, channels, ...], weight [channels], bias [channels]
// Rotates pairs of elements of x [..., d] by angles whose cosines and sines [..., d / 2] broadcast to x. Pairs are
// neighbours (2i, 2i + 1) if interleaved, else (i, i + d / 2).
const CompositeRef& rope();  // interleaved (0 or 1)
}  // namespace builtin

namespace prim {
// out[i..] = data[i.. with axis replaced by index[i..]]; 0 if the index is out of range.
Tensor gather(Operand data, Operand index, int axis);
// A copy of base with base[i.. with axis replaced by index[i..]] set to src; the last writer wins. Out-of-range indices
// write nothing.
Tensor scatter(Operand base, Operand index, Operand src, int axis);
// Like scatter, but adds src there.
Tensor scatter_add(Operand base, Operand index, Operand src, int axis);
// A copy of base with elements [start, start + extent of src) of an axis replaced by src.
Tensor slice_scatter(Operand base, Operand src, int axis, Dim start);
// i64 indices that sort an axis; the sort is stable and NaN is largest.
Tensor argsort(Operand a, int axis, bool descending = false);
// Each row of x [n, k] times the matrix of [count, m, k] that index [n] chooses, transposed: [n, m]. Matrices with a
// format are u8 blocks along the last axis.
Tensor gather_mm(Operand x, Operand matrices, Operand index, std::optional<QuantFormat> format = {});
// Decodes u8 [..., blocks * bytes per block] to f32 [..., blocks * elements per block].
Tensor dequantize(Operand bytes, QuantFormat format);
}  // namespace prim

// Builds the definition of a composite node, elementwise or not, from primitives and other composites. Returns its
// results.
std::vector<Tensor> define_all(const Node& n, std::span<const Tensor> in);

}  // namespace lc
