// What kernels of CUDA write in PTX for tensor cores, from compute capability 8.0 on.
#pragma once

#include <string_view>

namespace lc::codegen::simt {

// Stands before kernels that use it, more than once if need be.
std::string_view tensor_primitives();

}  // namespace lc::codegen::simt
