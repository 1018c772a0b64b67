// Paths of the sources, the reference data and the simulated drivers. They are constants of paths.cpp and not macros of
// each test, so that no test's command line names a folder and ccache finds the objects in any checkout.
#pragma once

namespace paths {

// $LIGHTCONE_TESTS_SOURCE, _DATA and _FAKE_CUDA override the first three.
extern const char* kSource;    // the root of the repository
extern const char* kData;      // ../shared/data
extern const char* kFakeCuda;  // a CUDA driver and an NVRTC that run on the CPU; "" if they are not built
extern const char* const kFakeCublasLt;
extern const char* const kFakeNccl;
extern const char* const kFakeMetal;
extern const char* const kFakeOpenCl;  // interposes between the library and the real driver
extern const char* const kPjrtPlugin;  // this library as a PJRT plugin; "" if it is not built

}  // namespace paths
