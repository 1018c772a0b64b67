// Shared by the tests of the simulated driver: its functions by name, compiled and loaded programs, device arrays.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "paths.h"

namespace fake_cuda_test {

using Address = std::uint64_t;
using Handle = void*;

inline void* library() {
  static void* const handle = dlopen(paths::kFakeCuda, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  return handle;
}

// Returns the function `name` with its type in CUDA's headers.
template <class Signature>
Signature* function(const char* name) {
  void* f = dlsym(library(), name);
  if (f == nullptr) throw std::runtime_error(std::string("the library has no ") + name);
  return reinterpret_cast<Signature*>(f);
}

inline int set(const char* name, long value) { return function<int(const char*, long)>("fake_cuda_set")(name, value); }
inline long get(const char* name) { return function<long(const char*)>("fake_cuda_get")(name); }
inline std::string fault() { return function<const char*()>("fake_cuda_fault")(); }

inline Address allocate(std::size_t bytes) {
  Address a = 0;
  EXPECT_EQ(function<int(Address*, std::size_t)>("cuMemAlloc_v2")(&a, bytes), 0);
  return a;
}
inline int release(Address a) { return function<int(Address)>("cuMemFree_v2")(a); }
inline int to_device(Address to, const void* from, std::size_t bytes) {
  return function<int(Address, const void*, std::size_t)>("cuMemcpyHtoD_v2")(to, from, bytes);
}
inline int to_host(void* to, Address from, std::size_t bytes) {
  return function<int(void*, Address, std::size_t)>("cuMemcpyDtoH_v2")(to, from, bytes);
}
inline int synchronize() { return function<int()>("cuCtxSynchronize")(); }

struct Compiled {
  int code;
  std::string image, log;
};

inline Compiled compile(const std::string& text, std::vector<const char*> options = {"-arch=sm_90"}) {
  Handle p = nullptr;
  const auto create = function<int(Handle*, const char*, const char*, int, const char* const*, const char* const*)>(
      "nvrtcCreateProgram");
  Compiled out{create(&p, text.c_str(), "kernel.cu", 0, nullptr, nullptr), "", ""};
  if (out.code != 0) return out;
  out.code = function<int(Handle, int, const char* const*)>("nvrtcCompileProgram")(p, static_cast<int>(options.size()),
                                                                                   options.data());
  std::size_t bytes = 0;
  if (function<int(Handle, std::size_t*)>("nvrtcGetProgramLogSize")(p, &bytes) == 0) {
    out.log.resize(bytes);
    function<int(Handle, char*)>("nvrtcGetProgramLog")(p, out.log.data());
  }
  if (out.code == 0 && function<int(Handle, std::size_t*)>("nvrtcGetCUBINSize")(p, &bytes) == 0 && bytes != 0) {
    out.image.resize(bytes);
    out.code = function<int(Handle, char*)>("nvrtcGetCUBIN")(p, out.image.data());
  }
  const int destroyed = function<int(Handle*)>("nvrtcDestroyProgram")(&p);
  if (out.code == 0) out.code = destroyed;
  return out;
}

inline int load(Handle* module, const std::string& image) {
  return function<int(Handle*, const void*)>("cuModuleLoadData")(module, image.data());
}

struct Shape {
  unsigned grid_x = 1, block_x = 32, dynamic_shared = 0, grid_y = 1, block_y = 1;
};

// The configuration of cuLaunchKernelEx, with one numeric attribute.
struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1}, block[3] = {32, 1, 1}, shared = 0;
  Handle stream = nullptr;
  const void* attributes = nullptr;
  unsigned count = 1;
};
struct LaunchAttribute {
  int id = 6, padding = 0;  // programmatic stream serialization
  unsigned value[16] = {};
};

inline int launch(Handle kernel, const Shape& s, std::vector<void*> arguments, Handle stream = nullptr) {
  return function<int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                      void**)>("cuLaunchKernel")(kernel, s.grid_x, s.grid_y, 1, s.block_x, s.block_y, 1,
                                                 s.dynamic_shared, stream, arguments.data(), nullptr);
}

// A module compiled from one text; the destructor unloads it.
class Program {
 public:
  explicit Program(const std::string& text) : Program(compile(text)) {}
  explicit Program(const Compiled& c) {
    EXPECT_EQ(c.code, 0) << c.log;
    EXPECT_EQ(load(&module_, c.image), 0);
  }
  ~Program() { function<int(Handle)>("cuModuleUnload")(module_); }
  Program(const Program&) = delete;
  Handle kernel(const char* name = "k") const {
    Handle f = nullptr;
    EXPECT_EQ(function<int(Handle*, Handle, const char*)>("cuModuleGetFunction")(&f, module_, name), 0);
    return f;
  }

 private:
  Handle module_ = nullptr;
};

template <class T>
class Array {
 public:
  explicit Array(std::size_t n) : address_(allocate(n * sizeof(T))), size_(n) {}
  explicit Array(const std::vector<T>& v) : Array(v.size()) { EXPECT_EQ(to_device(address_, v.data(), bytes()), 0); }
  ~Array() { release(address_); }
  Array(const Array&) = delete;
  void* argument() { return &address_; }
  Address address() const { return address_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  std::vector<T> values() const {
    std::vector<T> v(size_);
    EXPECT_EQ(to_host(v.data(), address_, bytes()), 0) << fault();
    return v;
  }

 private:
  Address address_ = 0;
  std::size_t size_;
};

// Each test begins with default settings and a current context, and must leave no live objects.
class FakeCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* zero : {"order", "deferred", "fail_at", "fail_compiles", "lost_at", "calls", "launches"})
      set(zero, 0);
    set("memory", 1l << 30);
    set("devices", 1);
    set("compute_capability", 90);
    ASSERT_EQ(function<int(unsigned)>("cuInit")(0), 0);
    ASSERT_EQ(function<int(Handle*, int)>("cuDevicePrimaryCtxRetain")(&context_, 0), 0);
    ASSERT_EQ(function<int(Handle)>("cuCtxSetCurrent")(context_), 0);
  }
  void TearDown() override {
    set("fail_at", 0);
    function<int(int)>("cuDevicePrimaryCtxReset_v2")(0);
    while (get("contexts") > 0) function<int(int)>("cuDevicePrimaryCtxRelease_v2")(0);
    EXPECT_EQ(get("live"), 0);
  }
  // Replaces the context after a fault.
  void reset() {
    function<int(int)>("cuDevicePrimaryCtxReset_v2")(0);
    function<int(Handle*, int)>("cuDevicePrimaryCtxRetain")(&context_, 0);
    function<int(Handle)>("cuCtxSetCurrent")(context_);
  }
  Handle context_ = nullptr;
};

}  // namespace fake_cuda_test
