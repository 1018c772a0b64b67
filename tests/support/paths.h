// Where the sources, the reference data and the stand-ins of devices are. They are constants of paths.cpp and no
// definitions of each test, so that no test's command line names a folder: ccache knows the objects in any checkout.
#pragma once

namespace paths {

// Of the first three $LIGHTCONE_TESTS_SOURCE, _DATA and _FAKE_CUDA say otherwise.
extern const char* kSource;    // the root of the repository
extern const char* kData;      // ../shared/data
extern const char* kFakeCuda;  // a CUDA driver and an NVRTC that run on the CPU; "" where they are not built
extern const char* const kFakeCublasLt;
extern const char* const kFakeMetal;
extern const char* const kFakeOpenCl;  // stands before the real one
extern const char* const kPjrtPlugin;  // this library as a plugin; "" where it is not built

}  // namespace paths
