// A CUDA device finds its libraries, manages memory, copies bytes at any address and caches kernels correctly, on a
// driver that runs on the CPU.
#include <algorithm>
#include <thread>

#include "compiled.h"
#include "cuda_fixture.h"
#include "lightcone/backends/cuda/compile.h"
#include "lightcone/cache/sha256.h"
#include "paths.h"

using namespace lc;
using test::Fake;
using test::fake_options;
using test::iota;
using test::kKernels;
using test::kText;
using test::put;
using test::SecondDriver;
using test::take;

namespace {

std::string refusal(const CudaOptions& o) {
  return error_of([&] { backends::cuda::open_device(o); });
}

backends::cuda::api::Address address(const std::unique_ptr<Buffer>& b) {
  return static_cast<const backends::cuda::DeviceBuffer&>(*b).address();
}

bool all_zero(const std::vector<std::byte>& v) {
  return std::all_of(v.begin(), v.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

// ---- libraries --------------------------------------------------------------------------------

TEST(CudaLibraries, WhatIsThereIsListedWithItsLimits) {
  Fake fake;
  const std::vector<backends::gpu::Limits> all = backends::cuda::devices(fake_options());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].architecture, "sm_90");
  EXPECT_EQ(all[0].max_block_size, 1024);
  EXPECT_EQ(all[0].warp, 32);
  EXPECT_EQ(all[0].shared, 227u << 10);
  EXPECT_EQ(all[0].multiprocessors, 132);
  EXPECT_EQ(all[0].memory, std::size_t{4} << 30);
  EXPECT_EQ(all[0].max_grid_size, 2147483647);
  EXPECT_EQ(all[0].language, backends::gpu::Language::Cuda);
  EXPECT_EQ(fake.live(), 0);
  const auto device = backends::cuda::open_device(fake_options());
  EXPECT_EQ(device->limits().architecture, "sm_90a");
  EXPECT_EQ(device->limits().driver, "CUDA 13.0, NVRTC 13.0");
  EXPECT_EQ(device->name(), all[0].name);
}

TEST(CudaLibraries, OnesThatAreMissingSayWhatToDo) {
  CudaOptions o = fake_options();
  o.driver = "/nonexistent/libcuda.so.1";
  EXPECT_PRED2(contains, refusal(o), "/nonexistent/libcuda.so.1");
  EXPECT_PRED2(contains, refusal(o), "install NVIDIA's driver");
  EXPECT_PRED2(contains, refusal(o), "LIGHTCONE_CUDA_DRIVER");
  o.driver = "libm.so.6";
  EXPECT_PRED2(contains, refusal(o), "has no function cuInit");
  o = fake_options();
  o.compiler = "/nonexistent/libnvrtc.so";
  EXPECT_PRED2(contains, refusal(o), "LIGHTCONE_NVRTC");
  o.compiler = "libm.so.6";
  EXPECT_PRED2(contains, refusal(o), "has no function nvrtcVersion");
  o = fake_options();
  o.device = 1;
  EXPECT_PRED2(contains, refusal(o), "no CUDA device 1");
  EXPECT_EQ(Fake().live(), 0);
}

TEST(CudaLibraries, AreNamedByTheEnvironment) {
  const Setting driver("LIGHTCONE_CUDA_DRIVER", paths::kFakeCuda), compiler("LIGHTCONE_NVRTC", "/nonexistent/nvrtc");
  EXPECT_EQ(backends::cuda::devices().size(), 1u);
  EXPECT_PRED2(contains, refusal({}), "/nonexistent/nvrtc");
  const Setting found("LIGHTCONE_NVRTC", paths::kFakeCuda);
  EXPECT_EQ(backends::cuda::open_device()->limits().warp, 32);
}

TEST(CudaLibraries, NvrtcIsFoundBelowTheToolkit) {
  const TempDir home;
  std::filesystem::create_directory(home / "lib64");
  std::filesystem::copy_file(paths::kFakeCuda, home / "lib64/libnvrtc.so.12");
  const Setting driver("LIGHTCONE_CUDA_DRIVER", paths::kFakeCuda), none("LIGHTCONE_NVRTC", nullptr),
      cuda("CUDA_HOME", home.path.c_str());
  const auto compiler = backends::cuda::Compiler::open("", 12040);
  EXPECT_NE(compiler, nullptr);
}

// The search order: the loader's path, the user's toolkit, then the folder of NVIDIA's packages.
TEST(CudaLibraries, FoldersOfToolkitsAreLookedThrough) {
  const Setting home("CUDA_HOME", "/opt/mine"), none("CUDA_PATH", nullptr);
  const std::vector<std::string> names = backends::cuda::with_toolkit_folders({"libx.so.1", "libx.so"});
  ASSERT_GE(names.size(), 6u);
  EXPECT_EQ(names[0], "libx.so.1");
  EXPECT_EQ(names[2], "/opt/mine/lib64/libx.so.1");
  EXPECT_NE(std::find(names.begin(), names.end(), "/usr/local/cuda/lib64/libx.so"), names.end());
}

TEST(CudaLibraries, TooOldADriverSaysWhichIsNeeded) {
  const SecondDriver second;
  {
    Fake fake(second.path);
    fake.set("driver_version", 11080);
    CudaOptions o = fake_options();
    o.driver = second.path;
    EXPECT_PRED2(contains, refusal(o), "is of version 11.8: version 12.0 or a newer one is needed");
  }
  Fake fake(second.path);
  fake.set("devices", 0);
  CudaOptions o = fake_options();
  o.driver = second.path;
  EXPECT_PRED2(contains, refusal(o), "finds no device: no CUDA-capable device is detected");
}

TEST(CudaLibraries, TwoDriversLiveInOneProcess) {
  const SecondDriver second;
  Fake one, two(second.path);
  two.set("compute_capability", 80);
  CudaOptions o = fake_options();
  o.driver = o.compiler = second.path;
  const auto a = backends::cuda::open_device(fake_options()), b = backends::cuda::open_device(o);
  EXPECT_EQ(a->limits().architecture, "sm_90a");
  EXPECT_EQ(b->limits().architecture, "sm_80");
  const auto x = a->allocate(16), y = b->allocate(16);
  EXPECT_EQ(one.get("allocations"), 1);
  EXPECT_EQ(two.get("allocations"), 1);
}

TEST(CudaLibraries, CodeIsForTheDevicesGeneration) {
  const auto compiler = backends::cuda::Compiler::open(paths::kFakeCuda);
  const auto target = [&](int major, int minor) { return backends::cuda::architecture_for(*compiler, major, minor); };
  EXPECT_EQ(target(7, 5), "sm_75");
  EXPECT_EQ(target(8, 8), "sm_87");  // the newest older architecture that runs there
  EXPECT_EQ(target(9, 0), "sm_90a");
  EXPECT_EQ(target(12, 0), "sm_120a");
  EXPECT_PRED2(contains, error_of([&] { target(6, 1); }),
               "compiles for no device of compute capability 6.1: take an older");
  EXPECT_PRED2(contains, error_of([&] { target(13, 0); }), "take a newer");
}

// ---- memory -----------------------------------------------------------------------------------

TEST(CudaMemory, IsZeroedAlignedAndComesBack) {
  Fake fake;
  {
    const auto d = backends::cuda::open_device(fake_options());
    for (const std::size_t bytes : {0, 1, 255, 256, 257, 100000}) {
      for (int twice = 0; twice < 2; ++twice) {  // the second allocation reuses the block that the first released
        const auto b = d->allocate(bytes);
        EXPECT_EQ(b->size(), bytes);
        EXPECT_EQ(b->host(), nullptr);
        EXPECT_EQ(address(b) % 256, 0u);
        EXPECT_TRUE(all_zero(take<std::byte>(*d, {b.get()}, bytes)));
        put(*d, {b.get()}, std::vector<std::byte>(bytes, std::byte{7}));
      }
    }
    EXPECT_LE(fake.get("allocations"), 5);
  }
  EXPECT_EQ(fake.live(), 0);
}

TEST(CudaMemory, WhatNobodyUsesIsGivenBackWhenItIsShort) {
  Fake fake;
  fake.set("memory", 64 << 20);
  const auto d = backends::cuda::open_device(fake_options());
  for (std::size_t k = 1; k <= 7; ++k) d->allocate(k << 20);
  EXPECT_GE(fake.get("allocated_bytes"), 6 << 20);
  const auto most = d->allocate(63 << 20);
  EXPECT_EQ(fake.get("allocations"), 1);
  const std::string said = error_of([&] { d->allocate(2 << 20); });
  EXPECT_PRED2(contains, said, "no 2097152 bytes");
  EXPECT_PRED2(contains, said, "1048576 of its 67108864 bytes are free");
  EXPECT_PRED2(contains, said, "smaller batch");
  EXPECT_THROW(d->allocate(~std::size_t{0} - 5), Error);
  EXPECT_TRUE(all_zero(take<std::byte>(*d, {most.get()}, 1000)));  // the device still works
}

TEST(CudaMemory, ReservedAddressesGetMemoryWhenItIsCommitted) {
  Fake fake;
  fake.set("memory", 64 << 20);
  {
    const auto d = backends::cuda::open_device(fake_options());
    const auto b = d->reserve(std::size_t{1} << 36);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->size(), std::size_t{1} << 36);
    EXPECT_EQ(b->committed(), 0u);
    EXPECT_TRUE(b->commit(0, 0));
    EXPECT_TRUE(b->commit(5 << 20, 1));
    const std::size_t once = b->committed();
    EXPECT_GT(once, 0u);
    EXPECT_TRUE(b->commit(5 << 20, 100));
    EXPECT_EQ(b->committed(), once);
    const BufferSlice at{b.get(), (5 << 20) + 3};
    EXPECT_TRUE(all_zero(take<std::byte>(*d, at, 1000)));
    put(*d, at, iota(100));
    EXPECT_TRUE(b->commit(0, 20 << 20));  // extends the committed range on both sides
    EXPECT_EQ(take<float>(*d, at, 100), iota(100));
    EXPECT_TRUE(all_zero(take<std::byte>(*d, {b.get(), 9 << 20}, 10 << 20)));
    EXPECT_FALSE(b->commit(0, std::size_t{1} << 30));  // exceeds the device memory
    EXPECT_FALSE(b->commit(b->size() - 1, 2));         // exceeds the reserved range
    EXPECT_EQ(take<float>(*d, at, 100), iota(100));
    EXPECT_EQ(d->reserve(~std::size_t{0}), nullptr);
    const auto small = d->reserve(100);
    EXPECT_EQ(small->committed(), 100u);
  }
  EXPECT_EQ(fake.live(), 0);
}

TEST(CudaMemory, MayOutliveItsDevice) {
  Fake fake;
  auto d = backends::cuda::open_device(fake_options());
  auto b = d->allocate(1000), r = d->reserve(100 << 20);
  r->commit(0, 100);
  auto code = d->compile(kText, kKernels);
  d.reset();
  EXPECT_GT(fake.live(), 0);
  b.reset(), r.reset(), code.reset();
  EXPECT_EQ(fake.live(), 0);
}

// ---- copies -----------------------------------------------------------------------------------

class CudaCopies : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(AtOnceAndDeferred, CudaCopies, ::testing::Values(0, 1));

TEST_P(CudaCopies, OfAllSizesAreWhatWasThere) {
  Fake fake;
  fake.set("deferred", GetParam());
  const auto d = backends::cuda::open_device(fake_options());
  for (const std::size_t n : {0u, 1u, 3u, 4096u, 1u << 20, (1u << 20) + 1, 2u << 20, 5u << 20, 37000001u})
    for (const std::size_t offset : {0u, 1u, 77u}) {
      std::vector<unsigned char> from(n);
      for (std::size_t k = 0; k < n; ++k) from[k] = static_cast<unsigned char>((k + n) * 2654435761u >> 17);
      const std::vector<unsigned char> want = from;
      const auto a = d->allocate(n + offset), b = d->allocate(n + offset);
      put(*d, {a.get(), offset}, from);
      std::fill(from.begin(), from.end(), static_cast<unsigned char>(0));  // the source may be changed at once
      d->copy({b.get(), offset}, {a.get(), offset}, n);
      d->zero({a.get(), offset}, n);
      EXPECT_TRUE(take<unsigned char>(*d, {b.get(), offset}, n) == want) << n << " at " << offset;
      EXPECT_TRUE(all_zero(take<std::byte>(*d, {a.get()}, n + offset))) << n << " at " << offset;
    }
  d->synchronise();
}

TEST_P(CudaCopies, ManySmallOnesKeepTheirOrder) {
  Fake fake;
  fake.set("deferred", GetParam());
  const auto d = backends::cuda::open_device(fake_options());
  const auto b = d->allocate(4000);
  for (int k = 0; k < 40000; ++k) d->copy_in({b.get(), static_cast<std::size_t>(k % 1000) * 4}, &k, 4);
  std::vector<int> want(1000);
  std::iota(want.begin(), want.end(), 39000);
  EXPECT_EQ(take<int>(*d, {b.get()}, 1000), want);
}

TEST(CudaCopiesChecked, BeyondABufferAreRefused) {
  const auto d = backends::cuda::open_device(fake_options());
  const auto b = d->allocate(100);
  char bytes[200] = {};
  EXPECT_PRED2(contains, error_of([&] {
                 d->copy_in({b.get(), 50}, bytes, 51);
               }),
               "51 bytes at 50 are not within a buffer");
  EXPECT_THROW(d->copy_out(bytes, {b.get(), 101}, 0), Error);
  EXPECT_THROW(d->zero({b.get(), 0}, ~std::size_t{0}), Error);
  EXPECT_THROW(d->copy({b.get(), 0}, {}, 1), Error);
}

// ---- kernels ----------------------------------------------------------------------------------

TEST(CudaKernels, TakePlacesAndSizes) {
  const auto d = backends::cuda::open_device(fake_options());
  const auto code = d->compile(kText, kKernels);
  const auto a = d->allocate(4000), b = d->allocate(4000);
  put(*d, {a.get()}, iota(1000));
  const BufferSlice places[] = {{a.get(), 40}, {b.get(), 400}};
  const std::int64_t sizes[] = {900, -3};
  backends::gpu::KernelLaunch s{
      .code = code.get(), .function = 0, .grid_size = 8, .block_size = 128, .buffers = places, .sizes = sizes};
  d->launch_kernel(s);
  s.grid_size = 0;  // an empty launch
  d->launch_kernel(s);
  std::vector<float> want = iota(900, 10);
  for (float& x : want) x *= -3;
  EXPECT_EQ(take<float>(*d, places[1], 900), want);
  EXPECT_EQ(take<float>(*d, {b.get()}, 100), std::vector<float>(100));
  s.grid_size = std::int64_t{1} << 31;
  EXPECT_PRED2(contains, error_of([&] { d->launch_kernel(s); }), "at most 2147483647");
  s.grid_size = 1, s.block_size = 1025;
  EXPECT_PRED2(contains, error_of([&] { d->launch_kernel(s); }),
               "1025 threads in a group, and the device takes at most 1024");
  s.block_size = 1, s.shared = 1 << 20;
  EXPECT_PRED2(contains, error_of([&] { d->launch_kernel(s); }), "bytes of shared memory");
}

TEST(CudaKernels, HaveMuchSharedMemoryAndTheSameBitsInEveryOrder) {
  Fake fake;
  const auto d = backends::cuda::open_device(fake_options());
  const auto code = d->compile(R"(
#ifndef LC_DYNAMIC_SHARED  // the driver on the CPU has its own
#define LC_DYNAMIC_SHARED(T, name) extern __shared__ T name[]
#endif
extern "C" __global__ void reversed(const float* x, float* y, long long n) {
  LC_DYNAMIC_SHARED(float, all);
  __shared__ float one;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) all[i] = x[i];
  if (threadIdx.x == 0) one = 1;
  __syncthreads();
  for (long long i = threadIdx.x; i < n; i += blockDim.x) y[i] = all[n - 1 - i] + one;
})",
                               {"reversed"});
  constexpr std::size_t kN = 50000;  // 200 KB
  const auto a = d->allocate(kN * 4), b = d->allocate(kN * 4);
  put(*d, {a.get()}, iota(kN));
  std::vector<float> want = iota(kN, 1);
  std::reverse(want.begin(), want.end());
  const BufferSlice places[] = {{a.get()}, {b.get()}};
  const std::int64_t sizes[] = {kN};
  for (const int order : {0, 1, 5}) {
    fake.set("order", order);
    d->zero({b.get()}, kN * 4);
    d->launch_kernel({.code = code.get(), .block_size = 256, .shared = kN * 4, .buffers = places, .sizes = sizes});
    EXPECT_EQ(take<float>(*d, {b.get()}, kN), want) << order;
  }
}

TEST(CudaKernels, OnesThatDoNotCompileSayWhy) {
  Fake fake;
  const auto d = backends::cuda::open_device(fake_options());
  const std::string said =
      error_of([&] { d->compile("extern \"C\" __global__ void broken(float* x) { x[0] = nowhere; }", {"broken"}); });
  EXPECT_PRED2(contains, said, "the kernel 'broken' does not compile for sm_90a: ");
  EXPECT_PRED2(contains, said, "nowhere");
  const std::string behind_notes = error_of([&] {
    d->compile(
        "#pragma message(\"a note before it\")\nextern \"C\" __global__ void broken(float* x) { x[0] = nowhere; }",
        {"broken"});
  });
  EXPECT_PRED2(contains, behind_notes, "nowhere");
  EXPECT_EQ(behind_notes.find("a note before it"), std::string::npos) << "it begins with the error: " << behind_notes;
  EXPECT_LT(said.size(), 3000u);
  EXPECT_PRED2(contains, error_of([&] { d->compile(kText, {"scale", "divide"}); }), "no kernel 'divide'");
  EXPECT_EQ(fake.get("programs"), 0);
  EXPECT_NE(d->compile(kText, kKernels), nullptr);
}

TEST(CudaKernels, AreKeptOnDisk) {
  if (!cache::Sha256::available()) GTEST_SKIP() << "no library here computes SHA-256";
  Fake fake;
  const TempDir dir;
  const auto compiled = [&](const std::string& text) {
    const long before = fake.get("compiles");
    const auto d = backends::cuda::open_device(fake_options(dir / "cache"));
    const auto code = d->compile(text, {"scale"});
    const auto a = d->allocate(8);
    put(*d, {a.get()}, iota(2, 1));
    const BufferSlice places[] = {{a.get()}, {a.get()}};
    const std::int64_t sizes[] = {2, 3};
    d->launch_kernel({.code = code.get(), .block_size = 2, .buffers = places, .sizes = sizes});
    EXPECT_EQ(take<float>(*d, {a.get()}, 2), (std::vector<float>{3, 6}));
    return fake.get("compiles") - before;
  };
  EXPECT_EQ(compiled(kText), 1);
  EXPECT_EQ(compiled(kText), 0);
  EXPECT_EQ(compiled(std::string(kText) + "\n"), 1);
  EXPECT_EQ(files_in(dir / "cache").size(), 2u);
  for (const std::string& file : files_in(dir / "cache")) {
    EXPECT_TRUE(file.ends_with(".cubin")) << file;
    std::string bytes = slurp(file);
    bytes[bytes.size() / 2] ^= 1;
    spit(file, bytes);
  }
  EXPECT_EQ(compiled(kText), 1);  // a damaged entry is not loaded
  EXPECT_EQ(compiled(kText), 0);
  for (const std::string& file : files_in(dir / "cache"))  // a valid entry whose content no driver loads
    cache::ObjectCache({.folder = dir / "cache"}).keep(std::filesystem::path(file).filename(), "rubbish");
  EXPECT_EQ(compiled(kText), 1);
  EXPECT_EQ(compiled(kText), 0);
  Fake other;
  other.set("compute_capability", 80);
  EXPECT_EQ(compiled(kText), 1);  // the code depends on the device
}

TEST(CudaKernels, CompileForAnyDeviceWithoutOne) {
  const auto compiler = backends::cuda::Compiler::open(paths::kFakeCuda);
  const std::string verbose = "--ptxas-options=-v";
  EXPECT_FALSE(backends::cuda::compile_cubin(*compiler, kText, kKernels, "sm_120a", {&verbose, 1}).code.empty());
  const std::string wrong = "--no-such-option";
  EXPECT_PRED2(contains, error_of([&] {
                 backends::cuda::compile_cubin(*compiler, kText, kKernels, "sm_80", {&wrong, 1});
               }),
               "the kernels 'scale', 'add' for sm_80: it does not know an option");
}

// ---- threads ----------------------------------------------------------------------------------

TEST_P(CudaCopies, AndKernelsOfManyThreadsDoNotMeet) {
  Fake fake;
  fake.set("deferred", GetParam());
  const TempDir dir;
  const auto d = backends::cuda::open_device(fake_options(dir / "cache"));
  std::vector<int> wrong(4, -1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      wrong[t] = 0;
      const auto code = d->compile(kText, kKernels);
      const test::TextKernel scale(code, 0), add(code, 1);
      for (int round = 0; round < 25; ++round) {
        const std::size_t n = 1000 + 300 * t;
        const auto a = d->allocate(n * 4), b = d->allocate(n * 4);
        test::Launches l(2);
        l.set(0, scale, {{a.get()}}, {b.get()}, {static_cast<std::int64_t>(n), round});
        l.set(1, add, {{a.get()}}, {b.get()}, {static_cast<std::int64_t>(n)});
        const auto recording = d->record(l.all);
        for (int run = 0; run < 3; ++run) {
          put(*d, {a.get()}, iota(n, static_cast<float>(run)));
          recording->run(0, 2);
          std::vector<float> want = iota(n, static_cast<float>(run));
          for (float& x : want) x *= static_cast<float>(round + 1);
          wrong[t] += take<float>(*d, {b.get()}, n) != want;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}
