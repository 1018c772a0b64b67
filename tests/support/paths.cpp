#include "paths.h"

#include <cstdlib>
#include <utility>

namespace paths {

const char* kSource = LIGHTCONE_SOURCE;
const char* kData = LIGHTCONE_DATA;
const char* kFakeCuda = FAKE_CUDA;
const char* const kFakeCublasLt = FAKE_CUBLAS_LT;
const char* const kFakeNccl = FAKE_NCCL;
const char* const kFakeMetal = FAKE_METAL;
const char* const kFakeOpenCl = FAKE_OPENCL;
const char* const kPjrtPlugin = LIGHTCONE_PJRT;

namespace {

// Tests that bench/gpu_check copied to another machine get their paths from the environment. The priority makes this
// run before static initializers that use the paths.
__attribute__((constructor(101))) void carried() {
  for (const auto& [variable, path] : {std::pair{"LIGHTCONE_TESTS_SOURCE", &kSource},
                                       {"LIGHTCONE_TESTS_DATA", &kData},
                                       {"LIGHTCONE_TESTS_FAKE_CUDA", &kFakeCuda}})
    if (const char* const there = std::getenv(variable)) *path = there;
}

}  // namespace
}  // namespace paths
