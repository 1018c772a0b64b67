// Device work of other vendor libraries, which stands for kernels without a text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace lc::simulators::cuda {

// The functions receive a function that tests whether memory is the device's.
struct LibraryWork {
  using OnDevice = bool (*)(std::uint64_t address, std::size_t bytes);
  std::function<std::string(OnDevice)> run;  // returns an error message, or ""
  // For work of several devices: whether run() may be called. It is asked again and again while the work is the
  // stream's next.
  std::function<bool(OnDevice)> ready = {};
};

}  // namespace lc::simulators::cuda

extern "C" {
// Counts a library call without stream work as a driver call, so that it can be made to fail. Returns what the driver
// would return.
int fake_cuda_library_call(void);
// Appends work to the stream, or to the graph that it captures.
int fake_cuda_library_work(void* stream, const lc::simulators::cuda::LibraryWork* work);
}
