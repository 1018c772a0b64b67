// PTX for tensor cores in CUDA kernels, from compute capability 8.0 on.
#pragma once

#include <string_view>

namespace lc::codegen::simt {

// Returns text that precedes kernels using it. It may occur more than once.
std::string_view tensor_primitives();

}  // namespace lc::codegen::simt
