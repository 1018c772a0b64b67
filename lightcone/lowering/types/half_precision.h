// A whole model in half precision, as a compiler: what torch's model.half() and model.bfloat16() do, for running it.
//
//   compile(g, generic() | half() | cuda());                  // f16
//   compile(g, generic() | half(DType::BF16) | cpu());
//
// Weights take half of their memory: they are given in f32, as before (Program::load, load of a checkpoint), and
// rounded when they are loaded; the f32 is not kept. (A product with a matrix [in, out] keeps it as [out, in].) What
// products and convolutions read is rounded, too, and so are values that lie between the calls of a model, as a
// residual stream. Sums, norms, softmax, attention's scores and losses are computed in f32, and arithmetic within a
// kernel.
//
// Names, shapes and types of inputs and outputs stay; so do states, f64, whole numbers, weights that are narrow already
// and weights in training, which autocast() is for (lowering/types/mixed_precision.h).
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc {

// Rounds to F16 (11 bits, up to 65504: what is larger becomes infinite) or BF16 (8 bits, the range of f32).
// Error for another type, and for a graph without f32.
Compiler half(DType to = DType::F16);

}  // namespace lc
