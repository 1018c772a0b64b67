// NVIDIA's own compiler, beside the one that runs here: FAKE_CUDA_NVRTC names its library.
#pragma once
#include <string>
#include <vector>

#include "nvrtc/compiler.h"

namespace fake_cuda {

// What keeps NVRTC from making code of this text with these options, "" if nothing does or the variable is not set.
std::string genuine_errors(const Source& source, const std::vector<std::string>& options);

}  // namespace fake_cuda
