// Mixed precision as a compiler, like torch.autocast and GradScaler, without a change to the model.
//
//   Trainer t(net, autocast(DType::BF16) | generic() | cpu(), {.seed = 1});
//   Trainer t(net, autocast(DType::F16) | generic() | cpu(), {.seed = 1});   // with a dynamic loss scale
//
// The operands of matrix products and convolutions, also in the backward pass, are rounded to half precision, and their
// products are summed in f32. Everything else stays f32: parameters (the master weights), optimiser states, norms,
// softmax, losses, sums and residual streams. Checkpoints therefore fit either way. A device whose products round their
// operands themselves, like the CPU's in bf16, stores no rounded copy.
//
// autocast() comes before generic(), which removes the gradient markers that the loss scale needs.
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc {

// Dynamic loss scaling with the defaults of torch.amp.GradScaler: the scale is halved after a step with a gradient that
// is not finite, and doubled after `growth_interval` finite steps in a row.
struct LossScaling {
  int exponent = 16;  // the first scale is 2^exponent
  std::int64_t growth_interval = 2000;
};
// Returns a compiler that rounds to bf16, which has the range of f32, or to f16 with a loss scale: the cotangent of
// each loss is multiplied by the scale, and each gradient is divided by it. A step with a gradient that is not finite
// assigns nothing that depends on gradients; counters, random states and running statistics advance. The scale is kept
// in the states "loss_scale.exponent" (the difference to `exponent`) and "loss_scale.good", and is the output
// "loss_scale". A graph without gradients is only rounded. Throws Error for another type.
Compiler autocast(DType to, const LossScaling& scaling = {});

}  // namespace lc
