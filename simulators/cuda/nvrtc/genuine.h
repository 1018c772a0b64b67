// NVIDIA's own compiler, in addition to the simulated one: FAKE_CUDA_NVRTC names its library.
#pragma once
#include <string>
#include <vector>

#include "nvrtc/compiler.h"

namespace lc::simulators::cuda {

// Returns NVRTC's errors for this text and these options, or "" if there are none or the variable is not set.
std::string genuine_errors(const Source& source, const std::vector<std::string>& options);

}  // namespace lc::simulators::cuda
