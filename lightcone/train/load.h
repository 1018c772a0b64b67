// Checkpoints into programs: every parameter by its name (torch.nn.Module.load_state_dict).
#pragma once

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/runtime/program.h"

namespace lc {

// Gives each parameter of the program the tensor of its name. Where the stored type is the parameter's the bytes are
// read where they lie in the file, which stays open as long as the program; floating tensors of another type are
// converted. Error where one is missing, has another shape or cannot be converted, and, unless `strict` is false, for a
// tensor of the file that is no parameter.
void load(Program& program, const Weights& file, bool strict = true);
// The same of arrays in memory: load(program, read_npz("weights.npz")). The program keeps them.
void load(Program& program, Arrays arrays, bool strict = true);

}  // namespace lc
