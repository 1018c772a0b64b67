// The simulated driver and NVRTC behave towards a host program as CUDA does: contexts, memory, launches, modules and
// faults. Any call can fail, and nothing leaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda_streams.h"

using namespace fake_cuda_test;

namespace {

using Driver = FakeCuda;

TEST_F(Driver, EveryCallAsksForWhatItNeeds) {
  Address a = 0;
  const auto allocation = function<int(Address*, std::size_t)>("cuMemAlloc_v2");
  std::thread([&] { EXPECT_EQ(allocation(&a, 4), 201) << "another thread has no current context"; }).join();
  Handle current = nullptr;
  const auto get_current = function<int(Handle*)>("cuCtxGetCurrent");
  EXPECT_EQ(by_handle("cuCtxSetCurrent", nullptr), 0);
  EXPECT_EQ(get_current(&current), 0);
  EXPECT_EQ(current, nullptr);
  EXPECT_EQ(allocation(&a, 4), 201);
  EXPECT_EQ(by_handle("cuCtxPushCurrent_v2", &a), 201) << "no context";
  EXPECT_EQ(by_handle("cuCtxPushCurrent_v2", context_), 0);
  EXPECT_EQ(get_current(&current), 0);
  EXPECT_EQ(current, context_);
  EXPECT_EQ(function<int(Handle*)>("cuCtxPopCurrent_v2")(&current), 0);
  EXPECT_EQ(allocation(&a, 4), 201);
  EXPECT_EQ(by_handle("cuCtxSetCurrent", context_), 0);
  EXPECT_EQ(function<int(int)>("cuDevicePrimaryCtxRelease_v2")(0), 0);
  EXPECT_EQ(allocation(&a, 4), 709) << "the context is gone";
  for (const char* name : {"cuStreamSynchronize", "cuEventSynchronize", "cuModuleUnload", "cuGraphDestroy"})
    EXPECT_EQ(by_handle(name, &a), 709) << name;
  reset();
  for (const char* name : {"cuStreamSynchronize", "cuStreamDestroy_v2", "cuEventSynchronize", "cuEventDestroy_v2",
                           "cuModuleUnload", "cuGraphDestroy", "cuGraphExecDestroy"})
    EXPECT_EQ(by_handle(name, &a), 400) << name << ": no such handle";
  set("devices", 0);
  EXPECT_EQ(function<int(unsigned)>("cuInit")(0), 100);
}

TEST_F(Driver, TheDeviceSaysWhatItIs) {
  int v = 0;
  const auto attribute = [&](int a) {
    EXPECT_EQ(function<int(int*, int, int)>("cuDeviceGetAttribute")(&v, a, 0), 0);
    return v;
  };
  const int wanted[][2] = {{75, 9},       {76, 0},         {16, 132},      {10, 32}, {1, 1024},
                           {8, 48 << 10}, {97, 227 << 10}, {38, 50 << 20}, {102, 1}, {5, 0x7fffffff},
                           {6, 65535},    {4, 64},         {81, 228 << 10}};
  for (const auto& [a, value] : wanted) EXPECT_EQ(attribute(a), value) << a;
  set("compute_capability", 75);
  EXPECT_EQ(attribute(75) * 10 + attribute(76), 75);
  EXPECT_EQ(attribute(97), 64 << 10);
  char name[64], uuid[16];
  EXPECT_EQ(function<int(char*, int, int)>("cuDeviceGetName")(name, 64, 0), 0);
  EXPECT_EQ(function<int(char*, int)>("cuDeviceGetUuid_v2")(uuid, 0), 0);
  EXPECT_EQ(function<int(char*, int, int)>("cuDeviceGetName")(name, 64, 1), 101);
  const char* words = nullptr;
  EXPECT_EQ(function<int(int, const char**)>("cuGetErrorName")(700, &words), 0);
  EXPECT_STREQ(words, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(function<int(int, const char**)>("cuGetErrorString")(12345, &words), 1);
}

TEST_F(Driver, MemoryHasBoundsAndAnEnd) {
  Address a = allocate(1000);
  std::vector<unsigned char> v(1001);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(to_host(v.data(), a, 1000), 0);
  EXPECT_EQ(v[0] & v[999], 0xff) << "nobody wrote there";
  EXPECT_EQ(to_host(v.data(), a, 1001), 1);
  EXPECT_EQ(to_host(v.data(), a + 1, 1000), 1);
  EXPECT_EQ(to_host(v.data(), a - 1, 1), 1);
  EXPECT_EQ(to_device(a, v.data(), 1001), 1);
  EXPECT_EQ(fill_async(a + 999, 7, 2, nullptr), 1);
  EXPECT_EQ(fill_async(a + 999, 7, 1, nullptr), 0);
  EXPECT_EQ(to_host(v.data(), a + 999, 1), 0);
  EXPECT_EQ(v[0], 7);
  EXPECT_EQ(release(a + 1), 1);
  EXPECT_EQ(release(a), 0);
  EXPECT_EQ(release(a), 1) << "twice";
  EXPECT_EQ(release(0), 0);
  EXPECT_EQ(to_host(v.data(), a, 1), 1);
  set("memory", 1 << 20);
  std::size_t free = 0, total = 0;
  a = allocate(600 << 10);
  Address b = 0;
  EXPECT_EQ(function<int(Address*, std::size_t)>("cuMemAlloc_v2")(&b, 600 << 10), 2);
  EXPECT_EQ(function<int(std::size_t*, std::size_t*)>("cuMemGetInfo_v2")(&free, &total), 0);
  EXPECT_EQ(total, 1u << 20);
  EXPECT_EQ(free, 424u << 10);
  const Program p("extern \"C\" __global__ void k(char* y) { y[0] = 1; }");
  Address beside = a - 1;
  EXPECT_EQ(launch(p.kernel(), {1, 1}, {&beside}), 0);
  EXPECT_EQ(synchronize(), 700);
  reset();
  const Program again("extern \"C\" __global__ void k(char* y) { y[0] = 1; }");
  const Address odd = allocate(100);  // its page is accessible up to a multiple of 256 bytes
  Address behind = odd + 100;
  EXPECT_EQ(launch(again.kernel(), {1, 1}, {&behind}), 0);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(release(odd), 700) << "a byte beside it was written";
  EXPECT_EQ(synchronize(), 700);
  reset();
}

TEST_F(Driver, VirtualMemory) {
  struct Properties {
    int type = 1, handles = 0, location_type = 1, location = 0;
    void* win32 = nullptr;
    unsigned char flags[8] = {};
  } properties;
  struct Access {
    int location_type = 1, location = 0;
    unsigned flags = 3;
  } access;
  constexpr std::size_t kUnit = 2 << 20;
  std::size_t unit = 0;
  EXPECT_EQ(function<int(std::size_t*, const void*, int)>("cuMemGetAllocationGranularity")(&unit, &properties, 0), 0);
  ASSERT_EQ(unit, kUnit);
  const auto create = function<int(Address*, std::size_t, const void*, unsigned long long)>("cuMemCreate");
  const auto map = function<int(Address, std::size_t, std::size_t, Address, unsigned long long)>("cuMemMap");
  const auto unmap = function<int(Address, std::size_t)>("cuMemUnmap");
  const auto give_access = function<int(Address, std::size_t, const void*, std::size_t)>("cuMemSetAccess");
  const auto release_handle = function<int(Address)>("cuMemRelease");
  const auto unreserve = function<int(Address, std::size_t)>("cuMemAddressFree");
  Address place = 0, h[2];
  EXPECT_EQ((function<int(Address*, std::size_t, std::size_t, Address, unsigned long long)>("cuMemAddressReserve")(
                &place, 4 * kUnit, 0, 0, 0)),
            0);
  EXPECT_EQ(create(&h[0], kUnit + 1, &properties, 0), 1);
  EXPECT_EQ(create(&h[0], kUnit, &properties, 0), 0);
  EXPECT_EQ(create(&h[1], kUnit, &properties, 0), 0);
  EXPECT_EQ(map(place, kUnit, 0, h[0], 0), 0);
  EXPECT_EQ(map(place, kUnit, 0, h[1], 0), 1) << "taken";
  EXPECT_EQ(map(place + 4 * kUnit, kUnit, 0, h[1], 0), 1) << "not reserved";
  EXPECT_EQ(map(place + kUnit, kUnit, 0, h[1], 0), 0);
  std::vector<int> v(1000, 5), w(1000);
  const Address middle = place + kUnit - 2000;
  EXPECT_EQ(to_device(middle, v.data(), 4000), 1) << "no access yet";
  EXPECT_EQ(give_access(place, 2 * kUnit, &access, 1), 0);
  EXPECT_EQ(to_device(middle, v.data(), 4000), 0) << "over both";
  EXPECT_EQ(to_host(w.data(), middle, 4000), 0);
  EXPECT_EQ(v, w);
  EXPECT_EQ(to_host(w.data(), place + 2 * kUnit - 4, 8), 1);
  EXPECT_EQ(unmap(place, kUnit), 0);
  EXPECT_EQ(to_host(w.data(), place, 4), 1);
  EXPECT_EQ(map(place + 2 * kUnit, kUnit, 0, h[0], 0), 0) << "the same memory elsewhere";
  EXPECT_EQ(give_access(place + 2 * kUnit, kUnit, &access, 1), 0);
  EXPECT_EQ(to_host(w.data(), place + 3 * kUnit - 2000, 2000), 0);
  EXPECT_EQ(w[0], 5);
  EXPECT_EQ(release_handle(h[0]), 0);
  EXPECT_EQ(release_handle(h[0]), 1);
  EXPECT_EQ(get("allocated_bytes"), 2l * kUnit) << "what is mapped stays";
  EXPECT_EQ(unreserve(place, 4 * kUnit), 1) << "still mapped";
  EXPECT_EQ(unmap(place + kUnit, 2 * kUnit), 0);
  EXPECT_EQ(release_handle(h[1]), 0);
  EXPECT_EQ(unreserve(place, 4 * kUnit), 0);
  EXPECT_EQ(get("allocated_bytes") + get("reservations") + get("physical") + get("mappings"), 0);
}

TEST_F(Driver, LaunchesHaveLimits) {
  const Program p(add_image());
  const Handle add = p.kernel("add");
  Array<int> y(4);
  int n = 4, by = 1;
  const std::vector<void*> arguments{y.argument(), &by, &n};
  EXPECT_EQ(launch(add, {0, 32}, arguments), 1);
  EXPECT_EQ(launch(add, {1, 1025}, arguments), 1);
  EXPECT_EQ(launch(add, {1, 64, 0, 1, 32}, arguments), 1);
  EXPECT_EQ(launch(add, {1, 32, 0, 65536}, arguments), 1);
  EXPECT_EQ(launch(add, {1, 32, 49153}, arguments), 1);
  EXPECT_EQ(launch(&n, {1, 32}, arguments), 400);
  EXPECT_EQ(launch(add, {1, 32}, arguments, &n), 400);
  Handle f = nullptr;
  const auto get_function = function<int(Handle*, Handle, const char*)>("cuModuleGetFunction");
  EXPECT_EQ(get_function(&f, &n, "add"), 400);
  const LaunchAttribute attribute;  // allowed = 0: this kernel is not prepared for overlap
  LaunchConfig config;
  config.attributes = &attribute;
  const auto launch_ex = function<int(const void*, Handle, void**, void**)>("cuLaunchKernelEx");
  void* pointers[] = {y.argument(), &by, &n};
  const std::vector<int> before(4, 7);
  EXPECT_EQ(to_device(y.address(), before.data(), 16), 0);
  EXPECT_EQ(launch_ex(&config, add, pointers, nullptr), 0);
  struct {
    Address y;
    int by, n;
  } packed{y.address(), 10, 4};
  std::size_t bytes = sizeof packed;
  void* extra[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &bytes, nullptr};
  EXPECT_EQ(launch_ex(&config, add, nullptr, extra), 0);
  EXPECT_EQ(y.values(), std::vector<int>(4, 18));
  int blocks = 0;
  const auto occupancy = function<int(int*, Handle, int, std::size_t)>("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  EXPECT_EQ(occupancy(&blocks, add, 256, 40 << 10), 0);
  EXPECT_EQ(blocks, 5);
  EXPECT_EQ(occupancy(&blocks, add, 1024, 0), 0);
  EXPECT_EQ(blocks, 2);
}

TEST_F(Driver, ImagesAreSealed) {
  const std::string& image = add_image().image;
  Handle m = nullptr;
  for (std::size_t at = 0; at < image.size(); at += at < 64 ? 1 : image.size() / 50) {
    std::string damaged = image;
    damaged[at] ^= 4;
    EXPECT_EQ(load(&m, damaged), 200) << "byte " << at;
  }
  for (const std::size_t bytes : {std::size_t(0), std::size_t(8), image.size() / 2, image.size() - 1})
    EXPECT_EQ(load(&m, image.substr(0, bytes) + std::string(image.size(), '\1')), 200) << "cut to " << bytes;
  EXPECT_EQ(load(&m, "// PTX"), 218);
  set("compute_capability", 86);
  EXPECT_EQ(load(&m, image), 209) << "made for 9.0";
  set("compute_capability", 90);
  EXPECT_EQ(get("modules"), 0);
  std::vector<Handle> many(40);
  for (Handle& h : many) EXPECT_EQ(load(&h, image), 0);
  Handle f = nullptr;
  EXPECT_EQ(function<int(Handle*, Handle, const char*)>("cuModuleGetFunction")(&f, many[0], "sub"), 500);
  for (const Handle h : many) EXPECT_EQ(by_handle("cuModuleUnload", h), 0);
}

TEST_F(Driver, NvrtcSaysWhatIsWrong) {
  const Compiled wrong = compile("extern \"C\" __global__ void k(float* y) {\n  y[0] = undeclared;\n}");
  EXPECT_EQ(wrong.code, 6);
  EXPECT_NE(wrong.log.find("kernel.cu:2"), std::string::npos) << wrong.log;
  EXPECT_EQ(compile("// extern \"C\" __global__ void k() {}").code, 6) << "a comment";
  EXPECT_EQ(compile(kAdd, {"-arch=sm_12"}).code, 5);
  EXPECT_EQ(compile(kAdd, {"-arch=sm_90", "--no-such-option"}).code, 5);
  EXPECT_TRUE(compile(kAdd, {"-arch=compute_90", "-fmad=false", "-std=c++17"}).image.empty()) << "no cubin of no chip";
  const char* conditional =
      "#if __CUDA_ARCH__ < 800 || !defined(LC_CUDA_SHIM) || N != 3\n#error old\n#endif\n"
      "extern \"C\" __global__ void k(int* y) { *y = N; }";
  EXPECT_EQ(compile(conditional, {"-arch=sm_75", "-DN=3"}).code, 6);
  EXPECT_EQ(compile(conditional, {"-arch=sm_90a", "--define-macro=N=3"}).code, 0);
  set("fail_compiles", 1);
  EXPECT_EQ(compile(kAdd).code, 6);
  EXPECT_EQ(compile(kAdd).code, 0);
  setenv("FAKE_CUDA_CXX", "/no/such/compiler", 1);
  EXPECT_EQ(compile(kAdd).code, 6);
  unsetenv("FAKE_CUDA_CXX");
  int count = 0, major = 0, minor = 0;
  EXPECT_EQ(function<int(int*)>("nvrtcGetNumSupportedArchs")(&count), 0);
  std::vector<int> architectures(static_cast<std::size_t>(count));
  EXPECT_EQ(function<int(int*)>("nvrtcGetSupportedArchs")(architectures.data()), 0);
  EXPECT_NE(std::find(architectures.begin(), architectures.end(), 90), architectures.end());
  EXPECT_EQ(function<int(int*, int*)>("nvrtcVersion")(&major, &minor), 0);
  EXPECT_EQ(major, 13);
}

// A small host program. It releases everything and returns its first error.
int host_program(std::vector<int>& out) {
  Handle module = nullptr, f = nullptr, s = nullptr, e = nullptr, graph = nullptr, exec = nullptr;
  void* pinned = nullptr;
  Address y = 0;
  int first = 0, n = 4, by = 5;
  bool capturing = false;
  const auto step = [&](const std::function<int()>& call) {
    if (first == 0) first = call();
    return first == 0;
  };
  void* arguments[] = {&y, &by, &n};
  const auto start = [&] {
    return function<int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                        void**)>("cuLaunchKernel")(f, 1, 1, 1, 32, 1, 1, 0, s, arguments, nullptr);
  };
  step([&] { return load(&module, add_image().image); });
  step([&] { return function<int(Handle*, Handle, const char*)>("cuModuleGetFunction")(&f, module, "add"); });
  step([&] { return function<int(Handle*, unsigned)>("cuStreamCreate")(&s, 1); });
  step([&] { return function<int(Handle*, unsigned)>("cuEventCreate")(&e, 0); });
  step([&] { return function<int(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&pinned, 16, 0); });
  step([&] { return function<int(Address*, std::size_t)>("cuMemAlloc_v2")(&y, 16); });
  step([&] { return fill_async(y, 0, 16, s); });
  capturing = step([&] { return begin_capture(s); });
  step(start);
  if (capturing) {
    const int code = end_capture(s, &graph);
    if (first == 0) first = code;
  }
  step([&] { return instantiate(&exec, graph); });
  step([&] { return graph_launch(exec, s); });
  step([&] { return to_host_async(pinned, y, 16, s); });
  step([&] { return record(e, s); });
  step([&] { return by_handle("cuEventSynchronize", e); });
  if (first == 0) out.assign(static_cast<int*>(pinned), static_cast<int*>(pinned) + 4);
  const auto give_back = [&](const char* name, Handle h) {
    if (const int code = h != nullptr ? by_handle(name, h) : 0; first == 0) first = code;
  };
  give_back("cuGraphExecDestroy", exec);
  give_back("cuGraphDestroy", graph);
  give_back("cuMemFreeHost", pinned);
  give_back("cuEventDestroy_v2", e);
  if (const int code = y != 0 ? release(y) : 0; first == 0) first = code;
  give_back("cuStreamDestroy_v2", s);
  give_back("cuModuleUnload", module);
  return first;
}

TEST_F(Driver, AnyCallCanFailOnceAndNothingLeaks) {
  for (const long deferred : {0, 1}) {
    set("deferred", deferred);
    std::vector<int> out;
    add_image();
    set("calls", 0);
    ASSERT_EQ(host_program(out), 0);
    EXPECT_EQ(out, std::vector<int>(4, 5));
    const long calls = get("calls");
    EXPECT_GT(calls, 15);
    for (long at = 1; at <= calls; ++at)
      for (const long code : {2, 999}) {
        set("calls", 0);
        set("fail_code", code);
        set("fail_at", at);
        EXPECT_EQ(host_program(out), code) << "call " << at;
        EXPECT_EQ(get("fail_at"), 0) << "once";
        EXPECT_EQ(get("live"), 1) << "the context only, after call " << at << " failed";
      }
    EXPECT_EQ(host_program(out), 0);
  }
}

TEST_F(Driver, ALostDeviceStaysLost) {
  const Program p(add_image());
  const Handle add = p.kernel("add");
  Array<int> y(std::vector<int>(4, 0));
  int n = 4, by = 1;
  set("lost_at", get("launches") + 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(launch(add, {1, 32}, {y.argument(), &by, &n}), 0);
  EXPECT_EQ(synchronize(), 719);
  int out = 0;
  EXPECT_EQ(to_host(&out, y.address(), 4), 719);
  EXPECT_EQ(by_handle("cuStreamSynchronize", nullptr), 719);
  reset();
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(get("live"), get("contexts"));
  const Program again(add_image());
  Array<int> z(4);
  EXPECT_EQ(launch(again.kernel("add"), {1, 32}, {z.argument(), &by, &n}), 0);
  EXPECT_EQ(synchronize(), 719) << "the device is still not there";
  reset();
}

TEST_F(Driver, CallsOfManyThreads) {
  const Program p(add_image());
  const Handle add = p.kernel("add");
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      by_handle("cuCtxSetCurrent", context_);
      const Handle s = stream();
      Array<int> y(std::vector<int>(256, 0));
      int n = 256, by = t + 1;
      for (int i = 0; i < 50; ++i) launch(add, {1, 256}, {y.argument(), &by, &n}, s);
      const Compiled c = compile("extern \"C\" __global__ void k(int* y) { *y = 1; }");
      EXPECT_EQ(by_handle("cuStreamSynchronize", s), 0);
      right += y.values() == std::vector<int>(256, 50 * by) && c.code == 0;
      by_handle("cuStreamDestroy_v2", s);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 4);
}

}  // namespace
