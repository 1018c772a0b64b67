// Loads checkpoints into programs: every parameter by its name (torch.nn.Module.load_state_dict).
#pragma once

#include <map>
#include <string>

#include "lightcone/io/checkpoints/stored_part.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/runtime/program.h"

namespace lc {

// Loads the tensor of its name into each parameter of the program. If the stored type is the parameter's, the bytes are
// read in place in the file, which stays open as long as the program; other floating types are converted. Throws Error
// if a tensor is missing, has another shape or cannot be converted, or, unless `strict` is false, if a tensor of the
// file is not a parameter.
void load(Program& program, const Weights& file, bool strict = true);
// The same for tensors of the file under other names than its own. Each of them is a parameter of the program; other
// parameters stay as they are. With `part`, the program is that of one rank, and takes the parts that it returns.
void load(Program& program, const Weights& file, const std::map<std::string, StoredTensor, std::less<>>& tensors,
          const PartOf& part = {});
// The same for arrays in memory: load(program, read_npz("weights.npz")). The program keeps the arrays.
void load(Program& program, Arrays arrays, bool strict = true);

// For nn::Stored: the type in which the file stores each parameter; f32 for tensors that the file lacks or that are no
// floats.
nn::StorageOf stored_as(const Weights& file);

}  // namespace lc
