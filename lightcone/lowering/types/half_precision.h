// Half-precision inference as a compiler, like torch's model.half() and model.bfloat16().
//
//   compile(g, generic() | half() | cuda());                  // f16
//   compile(g, generic() | half(DType::BF16) | cpu());
//
// Weights take half of their memory. They are given in f32 as usual (Program::load, load of a checkpoint) and rounded
// when they are loaded; the f32 values are not kept. (A matrix [in, out] of a product is kept as [out, in].) Operands
// of products and convolutions are rounded, too, and so are values passed between the calls of a model, such as a
// residual stream. Sums, norms, softmax, attention scores, losses and the arithmetic within a kernel stay in f32.
//
// Names, shapes and types of inputs and outputs do not change. States, f64, integers and weights that are narrow
// already do not change either, nor do weights in training: use autocast() for them (lowering/types/mixed_precision.h).
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc {

// Returns a compiler that rounds to F16 (11 bits, up to 65504; larger values become infinite) or BF16 (8 bits, the
// range of f32). Throws Error for another type, and for a graph without f32 values.
Compiler half(DType to = DType::F16);

}  // namespace lc
