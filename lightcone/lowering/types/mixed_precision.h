// Half precision as a compiler: what torch.autocast and GradScaler do, without a change to the model.
//
//   Trainer t(net, autocast(DType::BF16) | generic() | cpu(), {.seed = 1});
//   Trainer t(net, autocast(DType::F16) | generic() | cpu(), {.seed = 1});   // with a dynamic loss scale
//
// The operands of matrix products and convolutions, backward ones too, are rounded to half precision and their products
// summed in f32. All else stays f32: parameters (the master weights) and what the optimiser remembers, norms, softmax,
// losses, sums and residual streams. So checkpoints fit either way. A device whose products round their operands
// themselves, as the CPU's in bf16 do, stores no rounded copy.
//
// It stands in front of generic(), which takes the marks of gradients away that a loss scale needs.
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc {

// How the loss scale moves (torch.amp.GradScaler, whose defaults these are): it is halved behind a step whose gradients
// are not all finite, and doubled behind so many good ones in a row.
struct LossScaling {
  int exponent = 16;  // the first scale is 2^exponent
  std::int64_t growth_interval = 2000;
};
// Rounds to bf16, whose range is that of f32, or to f16, with a loss scale: the cotangent of each loss is multiplied by
// it and each gradient divided by it. A step with a gradient that is not finite assigns nothing that depends on
// gradients; counters, random states and running statistics go on. The scale is kept in the states
// "loss_scale.exponent" (what was added to `exponent`) and "loss_scale.good", and is an output, "loss_scale". A graph
// without gradients is rounded only. Error for another type.
Compiler autocast(DType to, const LossScaling& scaling = {});

}  // namespace lc
