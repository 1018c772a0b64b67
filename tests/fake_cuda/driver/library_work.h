// What other libraries of the vendor's do on the device, as kernels of their own that we have no text of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace fake_cuda {

// run() gets a function that says whether memory is the device's, and gives what went wrong in words, "" for nothing.
struct LibraryWork {
  using OnDevice = bool (*)(std::uint64_t address, std::size_t bytes);
  std::function<std::string(OnDevice)> run;
};

}  // namespace fake_cuda

extern "C" {
// A call of such a library that asks nothing of a stream: it counts as one of the driver's, so that it may be the one
// to fail. What the driver would return.
int fake_cuda_library_call(void);
// Puts work behind what the stream has, or into the graph that it captures.
int fake_cuda_library_work(void* stream, const fake_cuda::LibraryWork* work);
}
