// What a test chooses: by environment variables (FAKE_CUDA_ORDER=1) read when the library first needs them, or by
// fake_cuda_set("order", 1).
#pragma once
#include <atomic>

namespace fake_cuda {

struct Settings {
  using Value = std::atomic<long>;
  Value order = 0;     // of threads and blocks: 0 forward, 1 reverse, any other number shuffles by it
  Value deferred = 0;  // 1: work of streams runs only when somebody waits for it
  Value fail_at = 0;   // the call of this number (see `calls`) returns fail_code, once; 0: none
  Value fail_code = 999;
  Value fail_compiles = 0;  // so many compilations to come end with an error
  Value lost_at = 0;        // from the launch of this number on, every launch fails; 0: never
  Value sticky = 0;         // 1: after a fault the device is not given to this process again, as an H200 does it
  Value memory = 4l << 30;  // bytes of the device
  Value devices = 1;        // 0 or 1
  Value driver_version = 13000;
  Value nvrtc_version = 13000;
  Value compute_capability = 90;
  Value multiprocessors = 132;
  Value calls = 0;             // of the driver and of NVRTC so far
  Value launches = 0;          // of kernels so far, those in graphs included
  Value overlapping = 0;       // of them, those that need not wait for the one before
  Value compiles = 0;          // by the C++ compiler so far
  Value genuine_compiles = 0;  // and by the NVRTC that FAKE_CUDA_NVRTC names
};

Settings& settings();

// The value of that name, or null.
Settings::Value* find_setting(const char* name);

}  // namespace fake_cuda
