// Every call of an OpenCL driver fails in turn. Each failure gives an Error with its code, nothing leaks, and the next
// run is right.
//
// A library in front of the real one counts objects and makes calls fail.
#include <dlfcn.h>

#include "data.h"
#include "lightcone/backends/opencl/error.h"
#include "opencl_devices.h"
#include "paths.h"

using namespace lc;
using test::put;
using test::refusal;
using test::says;
using test::take;
using OpenClFaults = test::OnOpenCl;

namespace {

template <class F>
F control(const char* name) {
  static void* const library = ::dlopen(paths::kFakeOpenCl, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F>(::dlsym(library, name));
}
void fail(long n, backends::opencl::api::Int code) {
  control<void (*)(long, backends::opencl::api::Int)>("fake_fail")(n, code);
}
long calls() { return control<long (*)()>("fake_calls")(); }
long live() { return control<long (*)()>("fake_live")(); }
std::string failed() {
  const char* name = control<const char* (*)()>("fake_failed")();
  return name ? name : "";
}

void name_platform(const char* name) { control<void (*)(const char*)>("fake_platform")(name); }
std::string options() { return control<const char* (*)()>("fake_options")(); }

const OpenClOptions kFaulty = {.library = paths::kFakeOpenCl, .cache = "off"};
// The number of devices. If there are several, queries about unused ones may fail.
std::size_t devices() {
  static const std::size_t all = backends::opencl::devices().size();
  return all;
}

constexpr const char* kText = R"(
kernel void twice(global char* b0, long o0, long n, local char* shared) {
  global int* x = (global int*)(b0 + o0);
  if (get_global_id(0) < n) x[get_global_id(0)] *= 2;
})";

// Uses each function of a device once.
void whole_story(const OpenClOptions& options = kFaulty) {
  const auto device = backends::opencl::open_device(options);
  const auto code = device->compile(kText, {"twice"});
  const auto x = put(*device, std::vector<int>{1, 2, 3, 4});
  const auto y = device->allocate(16);
  const BufferSlice places[] = {{x.get(), 4}};
  const std::int64_t sizes[] = {3};
  device->launch_kernel({.code = code.get(), .block_size = 4, .shared = 16, .buffers = places, .sizes = sizes});
  device->copy({y.get(), 0}, {x.get(), 0}, 16);
  device->zero({y.get(), 0}, 4);
  device->synchronise();
  if (take<int>(*device, {y.get(), 0}, 4) != std::vector<int>{0, 4, 6, 8}) throw Error("story", "the result is wrong");
}

bool may_go_unsaid(const std::string& call) {  // destructors report no errors
  return call.starts_with("clRelease") || call == "clFinish" || (call == "clGetDeviceInfo" && devices() > 1);
}

// opencl.h describes the bug of that compiler. Here another driver takes its name.
TEST_F(OpenClFaults, IntelsCompilerForProcessorsMayNotOptimise) {
  const backends::opencl::DeviceInfo device = backends::opencl::devices(kFaulty)[0];
  whole_story();
  EXPECT_EQ(options().find("-cl-opt-disable") == std::string::npos, device.optimised) << options();
  name_platform("Intel(R) OpenCL");
  const std::string why = refusal([] { whole_story(); });
  const bool optimised = backends::opencl::devices(kFaulty)[0].optimised;
  name_platform("");
  EXPECT_EQ(why, "");
  EXPECT_EQ(options().find("-cl-opt-disable") == std::string::npos, optimised) << options();
  if (device.platform == "Portable Computing Language") {
    EXPECT_FALSE(optimised);
  }
}

TEST_F(OpenClFaults, EveryCallInTurn) {
  fail(0, 0);
  ASSERT_EQ(refusal([] { whole_story(); }), "");
  ASSERT_EQ(live(), 0);
  const long all = calls();
  ASSERT_GT(all, 50);
  int errors = 0;
  for (const backends::opencl::api::Int code : {-5, -4, -36, -9999}) {
    for (long n = 1; n <= all; ++n) {
      fail(n, code);
      const std::string why = refusal([] { whole_story(); });
      SCOPED_TRACE(str_cat("call ", n, " of ", all, ", ", failed(), ": ", backends::opencl::code_name(code)));
      ASSERT_NE(failed(), "");
      if (why.empty()) {
        EXPECT_TRUE(may_go_unsaid(failed()));
      } else {
        EXPECT_TRUE(says(why, backends::opencl::code_name(code))) << why;
        EXPECT_TRUE(says(why, "opencl: ")) << why;
        ++errors;
      }
      EXPECT_EQ(live(), 0);
    }
    fail(0, 0);
    EXPECT_EQ(refusal([] { whole_story(); }), "");
  }
  EXPECT_GT(errors, 4 * 40);
}

// The program comes from the cache, or is compiled from its text if that fails.
TEST_F(OpenClFaults, EveryCallInTurnWithACache) {
  const TempDir folder;
  OpenClOptions options = kFaulty;
  options.cache = folder.path.string();
  fail(0, 0);
  ASSERT_EQ(refusal([&] { whole_story(options); }), "");
  fail(0, 0);
  ASSERT_EQ(refusal([&] { whole_story(options); }), "");
  const long all = calls();
  int other_ways = 0;
  for (long n = 1; n <= all; ++n) {
    fail(n, -42);
    const std::string why = refusal([&] { whole_story(options); });
    SCOPED_TRACE(str_cat("call ", n, " of ", all, ", ", failed()));
    if (const std::string call = failed(); call == "clCreateProgramWithBinary" || call == "clBuildProgram") {
      EXPECT_EQ(why, "");
      ++other_ways;
    } else if (why.empty()) {
      EXPECT_TRUE(may_go_unsaid(call));
    }
    EXPECT_EQ(live(), 0);
    fail(0, 0);
    EXPECT_EQ(refusal([&] { whole_story(options); }), "");  // the entry is written again
  }
  EXPECT_EQ(other_ways, 2);
}

// A device that is not lost continues to work after a fault.
TEST_F(OpenClFaults, TheDeviceLivesOn) {
  fail(0, 0);
  const auto device = backends::opencl::open_device(kFaulty);
  const auto code = device->compile(kText, {"twice"});
  const auto x = put(*device, std::vector<int>{1, 2, 3});
  const BufferSlice places[] = {{x.get(), 0}};
  const std::int64_t sizes[] = {3};
  const backends::gpu::KernelLaunch twice{
      .code = code.get(), .block_size = 4, .shared = 16, .buffers = places, .sizes = sizes};
  for (long n = 1; n <= 5; ++n) {  // four arguments, and the launch itself
    fail(n, -5);
    const std::string why = refusal([&] { device->launch_kernel(twice); });
    EXPECT_TRUE(says(why, "CL_OUT_OF_RESOURCES (-5)") && says(why, "'twice'")) << why;
  }
  device->launch_kernel(twice);
  EXPECT_EQ(take<int>(*device, places[0], 3), (std::vector<int>{2, 4, 6}));
}

TEST_F(OpenClFaults, OutOfMemoryHasFigures) {
  fail(0, 0);
  const auto device = backends::opencl::open_device(kFaulty);
  const auto kept = device->allocate(100);
  const std::size_t all = device->limits().memory, most = backends::opencl::devices(kFaulty).at(0).max_allocation;
  const std::string figures = str_cat(all, " bytes in all, 100 of them allocated");
  for (const long n : {1, 2})  // when the buffer is created, and when it is first used
    for (const backends::opencl::api::Int code : {-4, -5, -6}) {
      fail(n, code);
      const std::string why = refusal([&] { device->allocate(1234567); });
      EXPECT_TRUE(says(why, "cannot allocate 1234567 bytes") && says(why, figures)) << why;
      EXPECT_TRUE(says(why, backends::opencl::code_name(code)) && says(why, "smaller model or batch")) << why;
    }
  if (most < all - 1000) {
    fail(1, -61);
    const std::string why = refusal([&] { device->allocate(most + 1); });
    EXPECT_TRUE(says(why, str_cat("buffers of at most ", most, " bytes, CL_INVALID_BUFFER_SIZE (-61)"))) << why;
  }
  fail(0, 0);
  EXPECT_EQ(take<char>(*device, {device->allocate(10).get(), 0}, 10), std::vector<char>(10));
}

TEST_F(OpenClFaults, LostDevicesAreNamedSo) {
  fail(0, 0);
  const auto device = backends::opencl::open_device(kFaulty);
  for (const backends::opencl::api::Int code : {-2, -34, -36}) {
    fail(1, code);
    const std::string why = refusal([&] { device->synchronise(); });
    EXPECT_TRUE(says(why, "the device was lost") && says(why, backends::opencl::code_name(code))) << why;
  }
}

// The build log may be unavailable, too.
TEST_F(OpenClFaults, FailingBuildsWithoutALog) {
  fail(0, 0);
  const auto device = backends::opencl::open_device(kFaulty);
  const long before = live();
  for (long n = 0; n <= 5; ++n) {
    fail(n, -30);
    const std::string why = refusal([&] { device->compile("kernel void f() { not_there(); }", {"f"}); });
    EXPECT_TRUE(says(why, "cannot")) << why;
    if (failed() == "clGetProgramBuildInfo") {
      EXPECT_TRUE(says(why, "does not say why")) << why;
    }
    EXPECT_EQ(live(), before);
  }
}

// This test needs no driver.
TEST(OpenClLibraryFaults, NoPlatformIsNoDevice) {
  fail(1, -1001);
  EXPECT_TRUE(backends::opencl::devices(kFaulty).empty());
  fail(1, -1001);
  const std::string why = refusal([] { backends::opencl::open_device(kFaulty); });
  EXPECT_TRUE(says(why, "there are 0. Install the driver") && says(why, "/etc/OpenCL/vendors")) << why;
  fail(0, 0);
}

}  // namespace
