#include "paths.h"

namespace paths {

const char* const kSource = LIGHTCONE_SOURCE;
const char* const kData = LIGHTCONE_DATA;
const char* const kFakeCuda = FAKE_CUDA;
const char* const kFakeCublasLt = FAKE_CUBLAS_LT;
const char* const kFakeMetal = FAKE_METAL;
const char* const kFakeOpenCl = FAKE_OPENCL;
const char* const kPjrtPlugin = LIGHTCONE_PJRT;

}  // namespace paths
