// Settings of the simulation: environment variables (FAKE_CUDA_ORDER=1), read when the library first needs them, or
// fake_cuda_set("order", 1).
#pragma once
#include <atomic>

namespace lc::simulators::cuda {

struct Settings {
  using Value = std::atomic<long>;
  Value order = 0;     // order of threads and blocks: 0 forward, 1 reverse, other numbers are seeds of a shuffle
  Value deferred = 0;  // 1: stream work runs only when something waits for it
  Value fail_at = 0;   // the number of the call (see `calls`) that returns fail_code, once; 0: none
  Value fail_code = 999;
  Value fail_compiles = 0;  // how many of the next compilations fail
  Value lost_at = 0;        // the number of the first launch from which all fail; 0: never
  Value sticky = 0;         // 1: after a fault the process cannot open the device again, as on an H200
  Value memory = 4l << 30;  // device memory in bytes
  Value devices = 1;        // 0 or 1
  Value driver_version = 13000;
  Value nvrtc_version = 13000;
  Value compute_capability = 90;
  Value multiprocessors = 132;
  Value calls = 0;             // calls of the driver and of NVRTC so far
  Value launches = 0;          // kernel launches so far, including those in graphs
  Value overlapping = 0;       // launches that may overlap the previous one
  Value compiles = 0;          // compilations by the C++ compiler so far
  Value genuine_compiles = 0;  // compilations by the NVRTC that FAKE_CUDA_NVRTC names
};

Settings& settings();

// Returns the setting with this name, or null.
Settings::Value* find_setting(const char* name);

}  // namespace lc::simulators::cuda
