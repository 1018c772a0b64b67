// The built-in composites: operations that move elements or count them, which arithmetic can define but devices do
// better. Each has a file of its own: shapes, definition, derivative and reference. A device adds a kernel in its
// library.cpp.
#pragma once

#include "lightcone/composites/block_formats.h"
#include "lightcone/core/composite.h"

namespace lc {

// The composites themselves, by which their nodes are recognised: is(node, builtin::gather()).
namespace builtin {
const CompositeRef& gather();         // axis
const CompositeRef& scatter();        // axis
const CompositeRef& scatter_add();    // axis
const CompositeRef& slice_scatter();  // axis, start
const CompositeRef& argsort();        // axis, descending
const CompositeRef& dequantize();     // format
// Its operand as it is: an index that ought to lie in [0, below), which a checked program looks at.
const CompositeRef& index_in_range();  // below
// A step, i64 [], and the attributes "seed", "stream" (whole numbers) and the extents of a shape, in order, give i32 of
// that shape: element e in row-major order is word e % 4 of the block whose counter is, from the lowest word on,
//   (e / 4) mod 2^32,   e / 4 / 2^32,   step mod 2^32,   step / 2^32
// under the key of seed and stream. The words are raw: all 2^32 patterns, as signed numbers.
const CompositeRef& random_bits();
}  // namespace builtin

namespace prim {
// out[i..] = data[i.. with axis replaced by index[i..]]; 0 where the index is out of range.
Tensor gather(Operand data, Operand index, int axis);
// base with base[i.. with axis replaced by index[i..]] set to src (the last writer wins), or
// with src added there. Indices out of range write nothing.
Tensor scatter(Operand base, Operand index, Operand src, int axis);
Tensor scatter_add(Operand base, Operand index, Operand src, int axis);
// base with [start, start + extent of src) of an axis replaced by src.
Tensor slice_scatter(Operand base, Operand src, int axis, Dim start);
// i64 indices that sort an axis; stable, NaN largest.
Tensor argsort(Operand a, int axis, bool descending = false);
// u8 [..., blocks * bytes] -> f32 [..., blocks * elements].
Tensor dequantize(Operand bytes, QuantFormat format);
}  // namespace prim

// The definition of a composite, elementwise ones included: its results in the twelve, which may use other composites.
std::vector<Tensor> define_all(const Node& n, std::span<const Tensor> in);

}  // namespace lc
