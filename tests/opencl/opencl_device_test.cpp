// Memory, copies, kernels and the kernel cache work on every OpenCL device that is installed.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "data.h"
#include "lightcone/backends/opencl/error.h"
#include "opencl_devices.h"

using namespace lc;
using test::on_each_device;
using test::put;
using test::refusal;
using test::says;
using test::take;
using OpenCl = test::OnOpenCl;

namespace {

// b1[i] = b0[i] + value, for i < n.
constexpr const char* kAdd = R"(
kernel void add(global char* b0, long o0, global char* b1, long o1, long n, long value) {
  global const int* x = (global const int*)(b0 + o0);
  global int* y = (global int*)(b1 + o1);
  const long i = get_global_id(0);
  if (i < n) y[i] = x[i] + (int)value;
})";

void add(backends::gpu::GpuDevice& device, const backends::gpu::Code& code, BufferSlice x, BufferSlice y,
         std::int64_t n, std::int64_t value) {
  const BufferSlice places[] = {x, y};
  const std::int64_t sizes[] = {n, value};
  device.launch_kernel(
      {.code = &code, .grid_size = (n + 63) / 64, .block_size = 64, .buffers = places, .sizes = sizes});
}

std::vector<int> numbers(std::size_t n) {
  std::vector<int> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// ---- without a device -------------------------------------------------------------------------

TEST(OpenClLibrary, MissingOneIsAnErrorThatSaysWhatToInstall) {
  const std::string why = refusal([] { backends::opencl::open_device({.library = "/nonexistent/libOpenCL.so"}); });
  EXPECT_TRUE(says(why, "/nonexistent/libOpenCL.so")) << why;
  EXPECT_TRUE(says(why, "OpenClOptions::library")) << why;
  EXPECT_TRUE(says(why, "install the driver")) << why;
  EXPECT_EQ(refusal([] { backends::opencl::devices({.library = "/nonexistent/libOpenCL.so"}); }), why);
}

TEST(OpenClLibrary, EnvironmentNamesOne) {
  const char* before = std::getenv("LIGHTCONE_OPENCL");
  const std::string kept = before ? before : "";
  ::setenv("LIGHTCONE_OPENCL", "/nonexistent/named.so", 1);
  const std::string why = refusal([] { backends::opencl::open_device(); });
  before ? ::setenv("LIGHTCONE_OPENCL", kept.c_str(), 1) : ::unsetenv("LIGHTCONE_OPENCL");
  EXPECT_TRUE(says(why, "'/nonexistent/named.so' that LIGHTCONE_OPENCL names")) << why;
}

TEST(OpenClLibrary, AnotherLibraryIsNone) {
  const std::string why = refusal([] { backends::opencl::open_device({.library = "libm.so.6"}); });
  EXPECT_TRUE(says(why, "has no function clGetPlatformIDs")) << why;
}

TEST(OpenClErrors, CodesHaveNames) {
  EXPECT_EQ(backends::opencl::code_name(0), "CL_SUCCESS (0)");
  EXPECT_EQ(backends::opencl::code_name(-4), "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)");
  EXPECT_EQ(backends::opencl::code_name(-19), "CL_KERNEL_ARG_INFO_NOT_AVAILABLE (-19)");
  EXPECT_EQ(backends::opencl::code_name(-30), "CL_INVALID_VALUE (-30)");
  EXPECT_EQ(backends::opencl::code_name(-46), "CL_INVALID_KERNEL_NAME (-46)");
  EXPECT_EQ(backends::opencl::code_name(-61), "CL_INVALID_BUFFER_SIZE (-61)");
  EXPECT_EQ(backends::opencl::code_name(-68), "CL_INVALID_DEVICE_PARTITION_COUNT (-68)");
  EXPECT_EQ(backends::opencl::code_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR (-1001)");
  for (const int code : {-20, -29, -69, -9999, 1, INT32_MIN, INT32_MAX})
    EXPECT_TRUE(says(backends::opencl::code_name(code), str_cat("(", code, ")"))) << code;
}

// ---- finding devices --------------------------------------------------------------------------

TEST_F(OpenCl, DevicesHaveLimits) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const backends::gpu::Limits& l = device.limits();
    EXPECT_EQ(l.language, backends::gpu::Language::OpenCl);
    EXPECT_EQ(device.name(), l.name);
    EXPECT_TRUE(says(l.architecture, l.name)) << l.architecture;
    EXPECT_FALSE(l.driver.empty());
    EXPECT_GE(l.max_block_size, 1);
    EXPECT_EQ(l.warp, 1);
    EXPECT_GE(l.shared, std::size_t{32} << 10);  // guaranteed by the full profile
    EXPECT_GE(l.multiprocessors, 1);
    EXPECT_GE(l.max_buffers, 24u);
    EXPECT_GE(l.memory, std::size_t{1} << 20);
    EXPECT_FALSE(device.shares_host_memory());
    EXPECT_EQ(device.reserve(100), nullptr);
  });
}

TEST_F(OpenCl, DevicesAreNamedByPlatformAndNumber) {
  const auto all = backends::opencl::devices();
  const std::string platform = all[0].platform.substr(0, all[0].platform.find(','));
  std::string capitals = platform;
  for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_EQ(backends::opencl::devices({.platform = capitals}).at(0).limits.name, all[0].limits.name);
  EXPECT_TRUE(backends::opencl::devices({.platform = "no such maker"}).empty());
  EXPECT_TRUE(says(refusal([] { backends::opencl::open_device({.platform = "no such maker"}); }),
                   "'no such maker'; there are 0"));
  const std::string why = refusal([] { backends::opencl::open_device({.device = 1000}); });
  EXPECT_TRUE(says(why, "no device 1000") && says(why, all[0].limits.name)) << why;
  EXPECT_TRUE(says(refusal([] { backends::opencl::open_device({.device = -1}); }), "no device -1"));
}

// ---- memory -----------------------------------------------------------------------------------

TEST_F(OpenCl, MemoryIsZeroed) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    for (const std::size_t n : {0, 1, 3, 16, 64, 100, 1000003}) {
      for (int again = 0; again < 2; ++again) {  // the second allocation may reuse memory
        const auto b = device.allocate(n);
        EXPECT_EQ(b->size(), n);
        EXPECT_EQ(b->host(), nullptr);
        EXPECT_EQ(take<char>(device, {b.get(), 0}, n), std::vector<char>(n));
        const std::vector<char> other(n, 7);
        device.copy_in({b.get(), 0}, other.data(), n);
      }
    }
  });
}

// Copies of all sizes between all positions, compared with the same on the host.
TEST_F(OpenCl, CopiesAreThoseOfTheHost) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    constexpr std::size_t kBytes = 4099;
    std::mt19937 random(1);
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n)(random); };
    std::unique_ptr<Buffer> buffers[] = {device.allocate(kBytes), device.allocate(kBytes)};
    std::vector<char> host[2] = {std::vector<char>(kBytes), std::vector<char>(kBytes)};
    std::vector<char> some(kBytes);
    for (int step = 0; step < 400; ++step) {
      const std::size_t n = step % 7 == 0 ? below(2) : below(kBytes), to = below(kBytes - n), from = below(kBytes - n);
      const std::size_t k = below(1);
      for (char& c : some) c = static_cast<char>(random());
      switch (random() % 4) {
        case 0:
          device.copy_in({buffers[k].get(), to}, some.data(), n);
          std::copy_n(some.begin(), n, host[k].begin() + static_cast<std::ptrdiff_t>(to));
          some.assign(kBytes, 0);  // the host may reuse its memory
          break;
        case 1:
          ASSERT_EQ(take<char>(device, {buffers[k].get(), from}, n),
                    std::vector<char>(host[k].begin() + static_cast<std::ptrdiff_t>(from),
                                      host[k].begin() + static_cast<std::ptrdiff_t>(from + n)));
          break;
        case 2:
          device.copy({buffers[k].get(), to}, {buffers[1 - k].get(), from}, n);
          std::copy_n(host[1 - k].begin() + static_cast<std::ptrdiff_t>(from), n,
                      host[k].begin() + static_cast<std::ptrdiff_t>(to));
          break;
        default:
          device.zero({buffers[k].get(), to}, n);
          std::fill_n(host[k].begin() + static_cast<std::ptrdiff_t>(to), n, 0);
      }
    }
    for (int k = 0; k < 2; ++k) EXPECT_EQ(take<char>(device, {buffers[k].get(), 0}, kBytes), host[k]);
    // within one buffer, adjacent ranges
    device.copy({buffers[0].get(), 2049}, {buffers[0].get(), 0}, 2049);
    std::copy_n(host[0].begin(), 2049, host[0].begin() + 2049);
    EXPECT_EQ(take<char>(device, {buffers[0].get(), 0}, kBytes), host[0]);
  });
}

TEST_F(OpenCl, PlacesAreChecked) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const auto b = device.allocate(100);
    char byte[200] = {};
    EXPECT_TRUE(says(refusal([&] { device.copy_in({b.get(), 1}, byte, 100); }), "100 bytes from byte 1 on"));
    EXPECT_TRUE(says(refusal([&] { device.copy_out(byte, {b.get(), 101}, 1); }), "of a buffer of 100 bytes"));
    EXPECT_TRUE(says(refusal([&] { device.zero({b.get(), 1}, SIZE_MAX); }), "of a buffer of 100 bytes"));
    EXPECT_TRUE(says(refusal([&] { device.copy({b.get(), 0}, {b.get(), 50}, 51); }), "51 bytes from byte 50 on"));
    EXPECT_TRUE(says(refusal([&] { device.copy_out(byte, {}, 1); }), "is in no memory of"));
    device.copy_out(byte, {}, 0);
    const auto empty = device.allocate(0);
    EXPECT_NE(refusal([&] { device.copy_out(byte, {empty.get(), 0}, 1); }), "");
    EXPECT_EQ(take<char>(device, {b.get(), 0}, 100), std::vector<char>(100));
  });
}

TEST_F(OpenCl, MemoryOfAnotherDeviceIsNotItsOwn) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const auto other = backends::opencl::open_device();
    const auto own = device.allocate(256), foreign = other->allocate(256);
    EXPECT_TRUE(says(refusal([&] { device.copy({own.get(), 0}, {foreign.get(), 0}, 4); }), "is in no memory of"));
    EXPECT_TRUE(says(refusal([&] { device.copy({foreign.get(), 0}, {own.get(), 0}, 4); }), "is in no memory of"));
    const auto code = device.compile(kAdd, {"add"}), strange = other->compile(kAdd, {"add"});
    EXPECT_TRUE(says(refusal([&] { add(device, *code, {own.get(), 0}, {foreign.get(), 0}, 4, 1); }), "in no memory"));
    EXPECT_TRUE(says(refusal([&] {
                       add(device, *strange, {own.get(), 0}, {own.get(), 0}, 4, 1);
                     }),
                     "not compiled for"));
    add(device, *code, {own.get(), 0}, {own.get(), 128}, 4, 1);
    EXPECT_EQ(take<int>(device, {own.get(), 128}, 4), std::vector<int>(4, 1));
  });
}

TEST_F(OpenCl, MoreThanThereIsIsAnErrorWithFigures) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    device.allocate(500).reset();  // freed memory does not count
    const auto kept = device.allocate(1000);
    for (const std::size_t n : {device.limits().memory, device.limits().memory + 1, SIZE_MAX}) {
      const std::string why = refusal([&] { device.allocate(n); });
      EXPECT_TRUE(says(why, str_cat("cannot allocate ", n, " bytes"))) << why;
      EXPECT_TRUE(says(why, str_cat(device.limits().memory, " bytes in all, 1000 of them allocated"))) << why;
    }
    EXPECT_EQ(take<char>(device, {device.allocate(1000).get(), 0}, 1000), std::vector<char>(1000));
  });
}

TEST_F(OpenCl, BuffersMayOutliveTheDevice) {
  for (const bool code_first : {false, true}) {
    auto device = backends::opencl::open_device();
    auto b = put(*device, numbers(1000));
    auto code = device->compile(kAdd, {"add"});
    for (int k = 0; k < 10; ++k) add(*device, *code, {b.get(), 0}, {b.get(), 0}, 1000, 1);
    if (code_first) code.reset();
    device.reset();
    b.reset();
  }
}

// ---- kernels ----------------------------------------------------------------------------------

TEST_F(OpenCl, KernelsRunInOrder) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const auto code = device.compile(kAdd, {"add"});
    constexpr int kNumbers = 1001, kRuns = 100;
    const auto x = put(device, numbers(kNumbers));
    const auto y = device.allocate(kNumbers * 4 + 12);
    for (int k = 0; k < kRuns; ++k) {
      add(device, *code, {x.get(), 0}, {y.get(), 12}, kNumbers, k);
      add(device, *code, {y.get(), 12}, {x.get(), 0}, kNumbers, 1);
    }
    device.synchronise();
    std::vector<int> expected = numbers(kNumbers);
    for (int& n : expected) n += kRuns * (kRuns - 1) / 2 + kRuns;
    EXPECT_EQ(take<int>(device, {x.get(), 0}, kNumbers), expected);
    EXPECT_EQ(take<int>(device, {y.get(), 0}, 3), std::vector<int>(3));
  });
}

TEST_F(OpenCl, ManyArguments) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const std::size_t places_count = device.limits().max_buffers, sizes_count = backends::gpu::kMaxSizes;
    std::string parameters, body;
    for (std::size_t k = 0; k < places_count; ++k) {
      parameters += str_cat("global char* b", k, ", long o", k, ", ");
      body += str_cat("  *(global long*)(b", k, " + o", k, ") = ", k, " + n", k % sizes_count, ";\n");
    }
    for (std::size_t k = 0; k < sizes_count; ++k)
      parameters += str_cat("long n", k, k + 1 < sizes_count ? ", " : ""),
          body += str_cat("  sum += ", k + 1, " * n", k, ";\n");
    const auto code = device.compile(str_cat("kernel void many(", parameters, ") {\n  long sum = 0;\n", body,
                                             "  *(global long*)(b0 + o0) = sum;\n}"),
                                     {"many"});
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<BufferSlice> places;
    for (std::size_t k = 0; k < places_count; ++k)
      buffers.push_back(device.allocate(8 * k + 8)), places.push_back({buffers[k].get(), 8 * k});
    std::vector<std::int64_t> sizes(sizes_count);
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < sizes_count; ++k) {
      sizes[k] = (std::int64_t{1} << 40) - static_cast<std::int64_t>(k);
      sum += static_cast<std::int64_t>(k + 1) * sizes[k];
    }
    device.launch_kernel({.code = code.get(), .buffers = places, .sizes = sizes});
    EXPECT_EQ(take<std::int64_t>(device, places[0], 1)[0], sum);
    for (std::size_t k = 1; k < places_count; ++k)
      EXPECT_EQ(take<std::int64_t>(device, places[k], 1)[0], static_cast<std::int64_t>(k) + sizes[k]);
  });
}

TEST_F(OpenCl, SharedMemoryAndPlacesOfNothing) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const auto code = device.compile(R"(
kernel void other(global char* b0, long o0) { *(global int*)(b0 + o0) = 5; }
kernel void reverse(global char* b0, long o0, global char* b1, long o1, long n, local char* shared) {
  local int* numbers = (local int*)shared;
  global int* x = (global int*)(b0 + o0);
  const int t = get_local_id(0);
  const long i = get_group_id(0) * n;
  numbers[t] = x[i + t];
  barrier(CLK_LOCAL_MEM_FENCE);
  x[i + t] = numbers[n - 1 - t] + (b1 == 0 && o1 == 0);
})",
                                     {"other", "reverse"});
    constexpr int kThreads = 64;
    const auto x = put(device, numbers(3 * kThreads));
    const BufferSlice places[] = {{x.get(), 0}, {}};
    const std::int64_t sizes[] = {kThreads};
    device.launch_kernel({.code = code.get(),
                          .function = 1,
                          .grid_size = 3,
                          .block_size = kThreads,
                          .shared = kThreads * 4,
                          .buffers = places,
                          .sizes = sizes});
    std::vector<int> expected;
    for (int group = 0; group < 3; ++group)
      for (int t = 0; t < kThreads; ++t) expected.push_back(group * kThreads + kThreads - 1 - t + 1);
    EXPECT_EQ(take<int>(device, {x.get(), 0}, 3 * kThreads), expected);
    device.launch_kernel({.code = code.get(), .buffers = {places, 1}});
    EXPECT_EQ(take<int>(device, {x.get(), 0}, 1)[0], 5);
  });
}

TEST_F(OpenCl, WrongStartsAreErrors) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const auto code = device.compile(kAdd, {"add"});
    const auto b = device.allocate(400);
    const BufferSlice places[] = {{b.get(), 0}, {b.get(), 200}};
    const std::int64_t sizes[] = {50, 1};
    const backends::gpu::KernelLaunch right{.code = code.get(), .block_size = 50, .buffers = places, .sizes = sizes};
    const auto why = [&](auto change) {
      backends::gpu::KernelLaunch s = right;
      change(s);
      return refusal([&] { device.launch_kernel(s); });
    };
    EXPECT_EQ(why([](backends::gpu::KernelLaunch& s) { s.grid_size = 0; }), "");
    EXPECT_EQ(take<int>(device, places[1], 50), std::vector<int>(50)) << "nothing was to be started";
    EXPECT_TRUE(says(why([](backends::gpu::KernelLaunch& s) { s.grid_size = -1; }), "cannot be started as -1 groups"));
    EXPECT_TRUE(says(why([&](backends::gpu::KernelLaunch& s) { s.grid_size = device.limits().max_grid_size + 1; }),
                     "has at most"));
    EXPECT_TRUE(says(why([](backends::gpu::KernelLaunch& s) { s.block_size = 0; }), "groups of 0 threads"));
    EXPECT_TRUE(says(why([&](backends::gpu::KernelLaunch& s) { s.block_size = device.limits().max_block_size + 1; }),
                     "'add' cannot run in groups"));
    EXPECT_TRUE(says(why([](backends::gpu::KernelLaunch& s) { s.function = 1; }), "kernel 1 of 1"));
    EXPECT_TRUE(says(why([](backends::gpu::KernelLaunch& s) { s.code = nullptr; }), "was not compiled for"));
    EXPECT_TRUE(says(why([](backends::gpu::KernelLaunch& s) { s.sizes = s.sizes.first(1); }),
                     "has 6 arguments, and 5 are given"));
    EXPECT_TRUE(says(why([](backends::gpu::KernelLaunch& s) { s.buffers = s.buffers.first(1); }),
                     "has 6 arguments, and 4 are given"));
    EXPECT_TRUE(says(why([](backends::gpu::KernelLaunch& s) { s.shared = 4; }), "has 6 arguments, and 7 are given"));
    const auto shared = device.compile("kernel void shared(local char* s) { s[0] = 1; }", {"shared"});
    EXPECT_TRUE(
        says(refusal([&] { device.launch_kernel({.code = shared.get(), .shared = device.limits().shared + 1}); }),
             "bytes of shared memory"));
    EXPECT_EQ(why([](backends::gpu::KernelLaunch&) {}), "");
    EXPECT_EQ(take<int>(device, places[1], 50), std::vector<int>(50, 1));
  });
}

// A kernel with a fixed workgroup size is launched with another one, which the driver refuses.
TEST_F(OpenCl, DriversRefusalsAreErrors) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const auto code = device.compile(
        "kernel __attribute__((reqd_work_group_size(16, 1, 1))) void fixed(global char* b, long o) { b[o] = 1; }"
        "kernel void narrow(global char* b, int o) { b[o] = 1; }",
        {"fixed", "narrow"});
    const auto b = device.allocate(4);
    const BufferSlice places[] = {{b.get(), 0}};
    const std::string why =
        refusal([&] { device.launch_kernel({.code = code.get(), .block_size = 8, .buffers = places}); });
    EXPECT_TRUE(says(why, "the kernel 'fixed' as 1 groups of 8 threads: CL_INVALID_WORK_GROUP_SIZE (-54)")) << why;
    const std::string size =
        refusal([&] { device.launch_kernel({.code = code.get(), .function = 1, .buffers = places}); });
    EXPECT_TRUE(says(size, "argument 1 of the kernel 'narrow': CL_INVALID_ARG_SIZE (-51)")) << size;
    device.launch_kernel({.code = code.get(), .block_size = 16, .buffers = places});
    EXPECT_EQ(take<char>(device, places[0], 1)[0], 1);
  });
}

TEST_F(OpenCl, ThreadsOfTheHostShareTheDevice) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    if (says(device.name(), "Oclgrind")) GTEST_SKIP() << "a simulator for one thread";
    const auto code = device.compile(kAdd, {"add"});
    constexpr std::size_t kThreads = 4, kRounds = 50;
    std::vector<std::string> wrong(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        wrong[t] = refusal([&] {
          for (std::size_t round = 0; round < kRounds; ++round) {
            const std::size_t n = 100 * t + round + 1;
            const auto x = put(device, numbers(n));
            const auto y = device.allocate(n * 4 + 8);
            add(device, *code, {x.get(), 0}, {y.get(), 8}, static_cast<std::int64_t>(n), static_cast<int>(t));
            std::vector<int> expected = numbers(n);
            for (int& v : expected) v += static_cast<int>(t);
            if (take<int>(device, {y.get(), 8}, n) != expected) throw Error("test", str_cat("thread ", t, " is wrong"));
            if (round % 10 == 0) static_cast<void>(device.compile(str_cat("// ", t, "\n", kAdd), {"add"}));
          }
        });
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, std::vector<std::string>(kThreads));
  });
}

// ---- the compiler -----------------------------------------------------------------------------

TEST_F(OpenCl, FailingBuildsHaveTheCompilersWords) {
  on_each_device([](backends::gpu::GpuDevice& device) {
    const std::string why = refusal([&] { device.compile("kernel void f(global int* x) { *x = not_there; }", {"f"}); });
    EXPECT_TRUE(says(why, "cannot compile a program: CL_BUILD_PROGRAM_FAILURE (-11)")) << why;
    EXPECT_TRUE(says(why, "not_there")) << why;
    std::string many = "kernel void f(global int* x) {\n";
    for (int k = 0; k < 1000; ++k) many += str_cat("  *x = not_there_", k, ";\n");
    EXPECT_LT(refusal([&] { device.compile(many + "}", {"f"}); }).size(), 2500u);
    EXPECT_TRUE(says(refusal([&] { device.compile(kAdd, {"add", "subtract"}); }), "no kernel 'subtract'"));
    EXPECT_NE(refusal([&] { device.compile("", {"add"}); }), "");
    EXPECT_NE(refusal([&] { device.compile(std::string("\0\0", 2), {"add"}); }), "");
    const auto code = device.compile(kAdd, {"add"});  // the device still works
    const auto b = device.allocate(8);
    add(device, *code, {b.get(), 0}, {b.get(), 4}, 1, 9);
    EXPECT_EQ(take<int>(device, {b.get(), 0}, 2), (std::vector<int>{0, 9}));
  });
}

// Compiled programs are cached, work as new ones do, and are compiled again if a cache entry is damaged.
TEST_F(OpenCl, CompiledTextIsKept) {
  const auto all = backends::opencl::devices();
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!all[k].unusable.empty()) continue;
    SCOPED_TRACE(all[k].limits.name);
    const TempDir folder;
    const auto files = [&] {
      std::vector<std::filesystem::path> found;
      for (const auto& f : std::filesystem::directory_iterator(folder.path)) found.push_back(f.path());
      return found;
    };
    const auto run = [&](std::int64_t value) {
      const auto device = backends::opencl::open_device({.device = static_cast<int>(k), .cache = folder.path.string()});
      const auto code =
          device->compile(str_cat("kernel void other(global char* b, long o) { b[o] = 1; }", kAdd), {"add", "other"});
      const auto b = device->allocate(400);
      add(*device, *code, {b.get(), 0}, {b.get(), 200}, 50, value);
      EXPECT_EQ(take<int>(*device, {b.get(), 200}, 50), std::vector<int>(50, static_cast<int>(value)));
      const BufferSlice places[] = {{b.get(), 3}};
      device->launch_kernel({.code = code.get(), .function = 1, .buffers = places});
      EXPECT_EQ(take<char>(*device, places[0], 1)[0], 1);
    };
    run(1);
    ASSERT_EQ(files().size(), 1u);
    EXPECT_TRUE(files()[0].string().ends_with(".clbin"));
    run(2);
    ASSERT_EQ(files().size(), 1u);
    std::ofstream(files()[0]) << "damaged";
    run(3);
    ASSERT_EQ(files().size(), 1u);
    std::string word(7, ' ');
    std::ifstream(files()[0]).read(word.data(), 7);
    EXPECT_NE(word, "damaged");
  }
}

// Expressions are not contracted or reordered, NaN and infinities are handled, and division is as accurate as the
// device states.
TEST_F(OpenCl, NumbersAreThoseOfTheHost) {
  const auto all = backends::opencl::devices();
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!all[k].unusable.empty()) continue;
    SCOPED_TRACE(all[k].limits.name);
    const auto device = backends::opencl::open_device({.device = static_cast<int>(k)});
    const auto code = device->compile(R"(
#pragma OPENCL FP_CONTRACT OFF
kernel void numbers(global char* b0, long o0, global char* b1, long o1) {
  const int i = get_global_id(0);
  const float a = ((global float*)b0)[3 * i], b = ((global float*)b0)[3 * i + 1], c = ((global float*)b0)[3 * i + 2];
  global float* y = (global float*)b1 + 5 * i;
  y[0] = a / b, y[1] = sqrt(a), y[2] = a * b + c, y[3] = (a + b) - a, y[4] = a != a ? 1.0f : a * 0.0f;
})",
                                      {"numbers"});
    constexpr std::size_t kRows = 1024;
    constexpr float kInf = INFINITY;
    std::vector<float> x = {1, 0, 1, -0.0f, 3, -0.0f, kInf, kInf, -kInf, NAN, 1, 2, -1, -0.0f, kInf, 1e38f, 1e-3f, 1};
    std::mt19937 random(2);
    std::uniform_real_distribution<float> exponent(-20, 20);
    while (x.size() < 3 * kRows) x.push_back(std::exp2(exponent(random)) * (random() % 2 ? 1.0f : -1.0f));
    const auto in = put(*device, x);
    const auto out = device->allocate(5 * kRows * 4);
    const BufferSlice places[] = {{in.get(), 0}, {out.get(), 0}};
    device->launch_kernel({.code = code.get(), .grid_size = kRows / 16, .block_size = 16, .buffers = places});
    const auto y = take<float>(*device, places[1], 5 * kRows);
    for (std::size_t i = 0; i < kRows; ++i) {
      const float a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
      const float expected[] = {a / b, std::sqrt(a), a * b + c, (a + b) - a, a != a ? 1.0f : a * 0.0f};
      for (std::size_t n = 0; n < 5; ++n) {
        const float got = y[5 * i + n];
        if (std::isnan(expected[n])) EXPECT_TRUE(std::isnan(got)) << n << ": " << a << ' ' << b << ' ' << c;
        else if (n < 2 && !all[k].correctly_rounded)
          EXPECT_TRUE(got == expected[n] || std::fabs(got / expected[n] - 1) < 4e-7) << n << ": " << a << ' ' << b;
        else {
          EXPECT_EQ(got, expected[n]) << n << ": " << a << ' ' << b << ' ' << c;
          EXPECT_EQ(std::signbit(got), std::signbit(expected[n])) << n << ": " << a << ' ' << b << ' ' << c;
        }
      }
    }
  }
}

}  // namespace
