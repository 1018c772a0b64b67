// Shared by the tests of the simulated driver: streams, events, captures and graphs by their functions' names, copies
// that a stream executes, and a program that adds and scales.
#pragma once

#include <cstddef>
#include <vector>

#include "fake_cuda.h"

namespace fake_cuda_test {

inline const char* const kAdd = R"(
  extern "C" __global__ void add(int* y, int by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += by;
  }
  extern "C" __global__ void scale(int* y, int by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] *= by;
  })";

inline const Compiled& add_image() {
  static const Compiled c = compile(kAdd);
  return c;
}

inline Handle stream(unsigned flags = 1) {
  Handle s = nullptr;
  EXPECT_EQ(function<int(Handle*, unsigned)>("cuStreamCreate")(&s, flags), 0);
  return s;
}

inline Handle event(unsigned flags = 0) {
  Handle e = nullptr;
  EXPECT_EQ(function<int(Handle*, unsigned)>("cuEventCreate")(&e, flags), 0);
  return e;
}

inline int by_handle(const char* name, Handle h) { return function<int(Handle)>(name)(h); }
inline int record(Handle e, Handle s) { return function<int(Handle, Handle)>("cuEventRecord")(e, s); }
inline int wait(Handle s, Handle e) { return function<int(Handle, Handle, unsigned)>("cuStreamWaitEvent")(s, e, 0); }
inline int begin_capture(Handle s, int mode = 1) {
  return function<int(Handle, int)>("cuStreamBeginCapture_v2")(s, mode);
}
inline int end_capture(Handle s, Handle* g) { return function<int(Handle, Handle*)>("cuStreamEndCapture")(s, g); }
inline int instantiate(Handle* e, Handle g) {
  return function<int(Handle*, Handle, unsigned long long)>("cuGraphInstantiateWithFlags")(e, g, 0);
}
inline int graph_launch(Handle e, Handle s) { return function<int(Handle, Handle)>("cuGraphLaunch")(e, s); }
inline int to_device_async(Address to, const void* from, std::size_t n, Handle s) {
  return function<int(Address, const void*, std::size_t, Handle)>("cuMemcpyHtoDAsync_v2")(to, from, n, s);
}
inline int to_host_async(void* to, Address from, std::size_t n, Handle s) {
  return function<int(void*, Address, std::size_t, Handle)>("cuMemcpyDtoHAsync_v2")(to, from, n, s);
}
inline int fill_async(Address to, unsigned char v, std::size_t n, Handle s) {
  return function<int(Address, unsigned char, std::size_t, Handle)>("cuMemsetD8Async")(to, v, n, s);
}

// Pinned memory: an asynchronous copy reads its bytes when the copy executes.
struct Pinned {
  explicit Pinned(std::size_t n) {
    EXPECT_EQ(function<int(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&memory, n * sizeof(int), 0), 0);
  }
  ~Pinned() { by_handle("cuMemFreeHost", memory); }
  int& operator[](std::size_t i) { return static_cast<int*>(memory)[i]; }
  void* memory = nullptr;
};

}  // namespace fake_cuda_test
