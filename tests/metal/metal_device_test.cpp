// The Metal device moves bytes, orders work and reports failures correctly, on a simulated Metal with shared and with
// private memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "fake.h"
#include "paths.h"

namespace lc::test {
namespace {

constexpr const char* kScale = R"(#include <metal_stdlib>
using namespace metal;
kernel void scale(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant long* n [[buffer(2)]],
                  uint group [[threadgroup_position_in_grid]], uint id [[thread_position_in_threadgroup]]) {
  const long i = long(group) * 64 + id;
  if (i < n[0]) y[i] = x[i] * float(n[1]);
}
kernel void last_size(device long* y [[buffer(0)]], constant long* n [[buffer(1)]]) { y[0] = n[n[0]]; }
kernel void turn(device int* y [[buffer(0)]], threadgroup int* kept [[threadgroup(0)]],
                 uint id [[thread_position_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
  kept[id] = y[id];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[id] = kept[threads - 1 - id];
}
)";
enum Function : std::size_t { Scale, LastSize, Turn };
const std::vector<std::string> kFunctions{"scale", "last_size", "turn"};

// A device with the kernels above.
struct Machine {
  explicit Machine(int number = 0)
      : device(backends::metal::open_device({.device = number, .library = paths::kFakeMetal})),
        code(device->compile(kScale, kFunctions)) {}
  void scale(BufferSlice y, BufferSlice x, std::int64_t n, std::int64_t by) const {
    const BufferSlice places[] = {x, y};
    const std::int64_t sizes[] = {n, by};
    device->launch_kernel({.code = code.get(),
                           .function = Scale,
                           .grid_size = (n + 63) / 64,
                           .block_size = 64,
                           .buffers = places,
                           .sizes = sizes});
  }
  std::shared_ptr<backends::gpu::GpuDevice> device;
  std::shared_ptr<const backends::gpu::Code> code;
};

std::vector<float> numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

// Computes x * 2 * 3 by two kernels and copies.
std::vector<float> six_times(const Machine& m, const std::vector<float>& x) {
  const std::size_t bytes = x.size() * sizeof(float);
  const auto a = m.device->allocate(bytes), b = m.device->allocate(bytes);
  m.device->copy_in({a.get()}, x.data(), bytes);
  m.scale({b.get()}, {a.get()}, static_cast<std::int64_t>(x.size()), 2);
  m.scale({a.get()}, {b.get()}, static_cast<std::int64_t>(x.size()), 3);
  std::vector<float> y(x.size());
  m.device->copy_out(y.data(), {a.get()}, bytes);
  return y;
}
std::vector<float> expected(std::vector<float> x) {
  for (float& v : x) v = v * 2 * 3;
  return x;
}

class MetalDevice : public MetalTest {};

// ---- finding it -------------------------------------------------------------------------------

TEST_F(MetalDevice, SystemsWithoutItSaySo) {
#if !defined(__APPLE__)
  const std::string none = error_of([] { backends::metal::open_device(); });
  EXPECT_NE(none.find("Metal is a framework of macOS"), none.npos) << none;
  EXPECT_NE(none.find("cpu()"), none.npos) << none;
#endif
  const std::string missing = error_of([] { backends::metal::devices({.library = "/nowhere/libmetal.so"}); });
  EXPECT_NE(missing.find("'/nowhere/libmetal.so' cannot be loaded"), missing.npos) << missing;
  const std::string other = error_of([] { backends::metal::open_device({.device = 0, .library = "libc.so.6"}); });
  EXPECT_NE(other.find("has no function objc_msgSend"), other.npos) << other;
}

TEST_F(MetalDevice, DevicesAreNamedAndChosen) {
  fake().devices = 2;
  const std::vector<std::string> both{"Fake Metal device", "Fake Metal device 2"};
  const std::vector<backends::gpu::Limits> found = backends::metal::devices({.library = paths::kFakeMetal});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, both[0]);
  EXPECT_EQ(found[1].name, both[1]);
  EXPECT_FALSE(found[1].f64);
  EXPECT_EQ(open(1)->name(), both[1]);
  EXPECT_NE(error_of([] { open(2); }).find("there is no device 2: Metal finds 2"), std::string::npos);
  EXPECT_NE(error_of([] { open(-1); }).find("there is no device -1"), std::string::npos);
  fake().devices = 0;
  EXPECT_NE(error_of([] { open(); }).find("Metal finds no GPU"), std::string::npos);
  EXPECT_NE(error_of([] { backends::metal::devices({.library = paths::kFakeMetal}); }).find("Metal finds no GPU"),
            std::string::npos);
}

TEST_F(MetalDevice, TheEnvironmentNamesTheLibrary) {
  ::setenv("LIGHTCONE_METAL", paths::kFakeMetal, 1);
  EXPECT_EQ(backends::metal::open_device()->name(), "Fake Metal device");
  ::setenv("LIGHTCONE_METAL", "/nowhere/libmetal.so", 1);
  EXPECT_EQ(open()->name(), "Fake Metal device") << "what the program says counts more";
  const std::string missing = error_of([] { backends::metal::open_device(); });
  EXPECT_NE(missing.find("'/nowhere/libmetal.so' cannot be loaded"), missing.npos) << missing;
  EXPECT_NE(missing.find("LIGHTCONE_METAL names it"), missing.npos) << missing;
  ::unsetenv("LIGHTCONE_METAL");
}

TEST_F(MetalDevice, LimitsAreTheDevices) {
  const backends::gpu::Limits l = open()->limits();
  EXPECT_EQ(l.name, "Fake Metal device");
  EXPECT_EQ(l.architecture, "applegpu_fake");
  EXPECT_EQ(l.driver, "Version 15.0 (fake)");
  EXPECT_EQ(l.language, backends::gpu::Language::Metal);
  EXPECT_EQ(l.max_block_size, 1024);
  EXPECT_EQ(l.warp, 32);
  EXPECT_EQ(l.shared, 32768u);
  EXPECT_EQ(l.memory, std::size_t{8} << 30);
  EXPECT_EQ(l.max_buffers, 30u);
  EXPECT_FALSE(l.f64);
  fake().old_system = true;  // an unknown device: SIMD shuffles are not used
  EXPECT_EQ(open()->limits().warp, 1);
  EXPECT_EQ(open()->limits().architecture, "mac");
}

// ---- memory -----------------------------------------------------------------------------------

// Applies random operations to two device buffers and to two host arrays, and compares them.
void move_bytes(backends::gpu::GpuDevice& d, unsigned seed) {
  constexpr std::size_t kBytes = 1003;
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const std::unique_ptr<Buffer> there[] = {d.allocate(kBytes), d.allocate(kBytes)};
  std::vector<std::uint8_t> here[] = {std::vector<std::uint8_t>(kBytes), std::vector<std::uint8_t>(kBytes)};
  for (int step = 0; step < 60; ++step) {
    const std::size_t unit = below(2) ? 1 : 4, which = below(2), other = 1 - which;
    const std::size_t n = below(kBytes / 2) / unit * unit, to = below(kBytes - n) / unit * unit,
                      from = below(kBytes - n) / unit * unit;
    std::vector<std::uint8_t> bytes(n);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
    switch (below(4)) {
      case 0:
        d.copy_in({there[which].get(), to}, bytes.data(), n);
        std::copy(bytes.begin(), bytes.end(), here[which].begin() + static_cast<std::ptrdiff_t>(to));
        std::fill(bytes.begin(), bytes.end(), 0);  // the device must not see this change
        break;
      case 1:
        d.copy({there[which].get(), to}, {there[other].get(), from}, n);
        std::copy_n(here[other].begin() + static_cast<std::ptrdiff_t>(from), n,
                    here[which].begin() + static_cast<std::ptrdiff_t>(to));
        break;
      case 2:
        d.zero({there[which].get(), to}, n);
        std::fill_n(here[which].begin() + static_cast<std::ptrdiff_t>(to), n, 0);
        break;
      default:
        d.copy_out(bytes.data(), {there[which].get(), from}, n);
        ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), here[which].begin() + static_cast<std::ptrdiff_t>(from)))
            << step;
    }
  }
  for (int k = 0; k < 2; ++k) {
    std::vector<std::uint8_t> all(kBytes);
    d.copy_out(all.data(), {there[k].get()}, kBytes);
    EXPECT_EQ(all, here[k]);
  }
}

TEST_F(MetalDevice, BytesMoveAsTheHostsDo) {
  for (const bool separate : {false, true})
    for (const bool deferred : {false, true}) {
      fake().separate_memory = separate, fake().deferred = deferred;
      const auto d = open();
      for (unsigned seed = 0; seed < 6; ++seed) move_bytes(*d, seed);
    }
  EXPECT_GT(fake().blits, 0u);
}

TEST_F(MetalDevice, BuffersAreZeroAlsoOfNoBytes) {
  const auto d = open();
  for (const std::size_t n : {0, 1, 63, 4096, 100003}) {
    const auto b = d->allocate(n);
    EXPECT_EQ(b->size(), n);
    EXPECT_EQ(b->host(), nullptr);
    std::vector<char> bytes(n, 1);
    d->copy_out(bytes.data(), {b.get()}, n);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), static_cast<std::ptrdiff_t>(n));
  }
}

TEST_F(MetalDevice, RangesStayWithinTheirBuffers) {
  const auto d = open();
  const auto a = d->allocate(100), b = d->allocate(10);
  char bytes[200] = {};
  const std::string behind = error_of([&] { d->copy_in({a.get(), 90}, bytes, 11); });
  EXPECT_NE(behind.find("11 bytes from byte 90 on are not within a buffer of 100 bytes"), behind.npos) << behind;
  const auto refused = [&](auto f) { return error_of(f).find("not within a buffer") != std::string::npos; };
  EXPECT_TRUE(refused([&] { d->copy_out(bytes, {a.get(), 101}, 0); }));
  EXPECT_TRUE(refused([&] { d->copy({a.get()}, {b.get()}, 11); }));
  EXPECT_TRUE(refused([&] { d->copy({b.get()}, {a.get()}, 11); }));
  EXPECT_TRUE(refused([&] { d->zero({b.get(), 1}, std::size_t(-1)); }));
  EXPECT_NE(error_of([&] { d->zero({}, 1); }).find("there is no buffer"), std::string::npos);
  const auto other = open();  // with a queue of its own
  EXPECT_NE(error_of([&] { other->zero({a.get()}, 1); }).find("another device's"), std::string::npos);
  d->zero({a.get(), 100}, 0);  // an empty range at the end is valid
}

TEST_F(MetalDevice, MemoryThatIsNotThereIsAnError) {
  fake().memory = 1 << 20;
  const auto d = open();
  const auto a = d->allocate(600 << 10);
  const std::string why = error_of([&] { d->allocate(600 << 10); });
  EXPECT_NE(why.find("has no buffer of 614400 bytes to give: 614400 of 1048576 bytes are in use"), why.npos) << why;
  EXPECT_NE(error_of([&] { d->allocate(std::size_t{1} << 62); }).find("a buffer has 4294967296 at most"),
            std::string::npos);
  EXPECT_NE(d->allocate(300 << 10), nullptr);
}

// Resources of a finished command are reused although nothing has waited for it.
TEST_F(MetalDevice, MemoryOfWorkThatIsDoneIsUsedAgain) {
  fake().memory = 4 << 20, fake().separate_memory = true;
  const auto d = open();
  const auto a = d->allocate(1 << 20);
  const std::vector<char> bytes(1 << 20, 7);
  for (int k = 0; k < 20; ++k) d->copy_in({a.get()}, bytes.data(), bytes.size());
  std::vector<char> back(1 << 20);
  d->copy_out(back.data(), {a.get()}, back.size());
  EXPECT_EQ(back, bytes);
}

// ---- kernels ----------------------------------------------------------------------------------

TEST_F(MetalDevice, KernelsRunInAnyOrderOfThreads) {
  const Machine m;
  for (const long order : {0, 1, 2, 3}) {
    fake().order = order;
    for (const std::size_t n : {1, 63, 64, 65, 1000}) {
      const std::vector<float> x = numbers(n, static_cast<unsigned>(n));
      EXPECT_EQ(six_times(m, x), expected(x));
    }
  }
}

TEST_F(MetalDevice, SizesAreManyOrNone) {
  const Machine m;
  const auto y = m.device->allocate(8 * 1024);
  for (const std::int64_t n : {2, 512, 513, 5000}) {  // up to 512 sizes are passed inline, without a buffer
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(n));
    std::iota(sizes.begin(), sizes.end(), 1000);
    sizes[0] = n - 1;
    const BufferSlice places[] = {{y.get()}};
    m.device->launch_kernel({.code = m.code.get(), .function = LastSize, .buffers = places, .sizes = sizes});
    std::int64_t got = 0;
    m.device->copy_out(&got, {y.get()}, 8);
    EXPECT_EQ(got, 1000 + n - 1);
  }
}

TEST_F(MetalDevice, GroupsShareMemoryBeyondTheText) {
  const Machine m;
  std::vector<int> x(37);
  std::iota(x.begin(), x.end(), 0);
  const auto y = m.device->allocate(x.size() * 4 + 8);
  m.device->copy_in({y.get(), 8}, x.data(), x.size() * 4);
  const BufferSlice places[] = {{y.get(), 8}};
  m.device->launch_kernel(
      {.code = m.code.get(), .function = Turn, .block_size = 37, .shared = 37 * 4, .buffers = places});
  m.device->copy_out(x.data(), {y.get(), 8}, x.size() * 4);
  for (int i = 0; i < 37; ++i) EXPECT_EQ(x[static_cast<std::size_t>(i)], 36 - i);
}

TEST_F(MetalDevice, StartsThatCannotBeAreRefused) {
  const Machine m;
  const auto y = m.device->allocate(64);
  const BufferSlice places[] = {{y.get()}};
  const auto start = [&](auto change) {
    backends::gpu::KernelLaunch s{
        .code = m.code.get(), .function = Turn, .block_size = 8, .shared = 64, .buffers = places};
    change(s);
    return error_of([&] { m.device->launch_kernel(s); });
  };
  const auto has = [](const std::string& s, const char* part) { return s.find(part) != s.npos ? "" : s; };
  EXPECT_EQ(has(start([](backends::gpu::KernelLaunch& s) { s.block_size = 1025; }),
                "the kernel 'turn' has groups of 1025 threads"),
            "");
  EXPECT_EQ(has(start([](backends::gpu::KernelLaunch& s) { s.block_size = 0; }), "1 to 1024"), "");
  EXPECT_EQ(has(start([](backends::gpu::KernelLaunch& s) { s.grid_size = -1; }), "has -1 groups"), "");
  EXPECT_EQ(
      has(start([](backends::gpu::KernelLaunch& s) { s.grid_size = std::int64_t{1} << 40; }), "can be started at once"),
      "");
  EXPECT_EQ(has(start([](backends::gpu::KernelLaunch& s) { s.shared = 32769; }),
                "shares 0 + 32769 bytes, and a group has 32768"),
            "");
  EXPECT_EQ(has(start([](backends::gpu::KernelLaunch& s) { s.function = 3; }), "was not compiled for this device"), "");
  EXPECT_EQ(has(start([](backends::gpu::KernelLaunch& s) { s.code = nullptr; }), "was not compiled for this device"),
            "");
  const std::vector<BufferSlice> many(31, places[0]);
  EXPECT_EQ(has(start([&](backends::gpu::KernelLaunch& s) { s.buffers = many; }), "takes 31 buffers, more than 30"),
            "");
  const BufferSlice behind[] = {{y.get(), 65}};
  EXPECT_EQ(has(start([&](backends::gpu::KernelLaunch& s) { s.buffers = behind; }), "not within a buffer of 64 bytes"),
            "");
  EXPECT_EQ(start([](backends::gpu::KernelLaunch& s) { s.grid_size = 0; }), "no error");
  m.device->synchronise();
}

// ---- compiling --------------------------------------------------------------------------------

std::string compile_error(backends::gpu::GpuDevice& d, const std::string& body, const std::string& name = "k") {
  const std::string text = "#include <metal_stdlib>\nusing namespace metal;\n" + body + "\n";
  return error_of([&] { d.compile(text, {name}); });
}

TEST_F(MetalDevice, TheCompilersWordsAreInTheError) {
  const auto d = open();
  const std::string wrong = compile_error(*d, "kernel void k(device float* y [[buffer(0)]]) { y[0] = nothing; }");
  EXPECT_NE(wrong.find("the compiler of 'Fake Metal device' refuses a program"), wrong.npos) << wrong;
  EXPECT_NE(wrong.find("program_source:3"), wrong.npos) << wrong;
  EXPECT_NE(wrong.find("nothing"), wrong.npos) << wrong;
  EXPECT_LT(wrong.size(), 2500u);
  EXPECT_NE(
      compile_error(*d, "kernel void k(device float* y [[buffer(0)]]) { y[0] = double(y[1]); }").find("no_type_double"),
      std::string::npos);
  EXPECT_NE(compile_error(*d, "kernel void k(device float* y [[buffer(0)]]) {}", "other").find("no kernel 'other'"),
            std::string::npos);
  const std::string large = compile_error(
      *d, "kernel void k(device float* y [[buffer(0)]]) { threadgroup float t[8193]; t[0] = y[0]; y[1] = t[0]; }");
  EXPECT_NE(large.find("cannot run the kernel 'k': Threadgroup memory size (32772)"), large.npos) << large;
  EXPECT_NE(error_of([&] { d->compile("\xff\xfe", {"k"}); }), "no error");
}

TEST_F(MetalDevice, KernelsForOtherWidthsAreRefused) {
  const auto d = open();
  fake().thread_width = 64;
  const std::string why = compile_error(*d, "kernel void k(device float* y [[buffer(0)]]) { y[0] = 1.0; }");
  EXPECT_NE(why.find("runs 64 threads of 'k' at once and not 32"), why.npos) << why;
}

TEST_F(MetalDevice, KernelsSayHowManyThreadsTheyTake) {
  const auto d = open();
  const auto code = d->compile(
      "[[max_total_threads_per_threadgroup(64)]] kernel void k(device int* y [[buffer(0)]]) { y[0] = 1; }", {"k"});
  const auto y = d->allocate(4);
  const BufferSlice places[] = {{y.get()}};
  EXPECT_NE(
      error_of([&] { d->launch_kernel({.code = code.get(), .block_size = 65, .buffers = places}); }).find("1 to 64"),
      std::string::npos);
}

// Systems without the newer selectors (another way to disable fast math, no shared memory) give the same results.
TEST_F(MetalDevice, OldSystemsDoTheSame) {
  fake().old_system = true;
  const Machine m;
  const std::vector<float> x = numbers(300, 1);
  EXPECT_EQ(six_times(m, x), expected(x));
}

// ---- order and failure ------------------------------------------------------------------------

TEST_F(MetalDevice, WorkMayRunWhenSomebodyWaits) {
  fake().deferred = true;
  for (const bool separate : {false, true}) {
    fake().separate_memory = separate;
    const Machine m;
    const std::size_t n = 100, bytes = n * 4;
    const auto x = m.device->allocate(bytes), y = m.device->allocate(bytes * 40);
    std::vector<std::vector<float>> given;
    for (unsigned k = 0; k < 40; ++k) {  // the input changes before the kernels that read it run
      given.push_back(numbers(n, k));
      m.device->copy_in({x.get()}, given.back().data(), bytes);
      m.scale({y.get(), k * bytes}, {x.get()}, n, 2);
      auto gone = m.device->allocate(bytes);
      m.scale({gone.get()}, {x.get()}, n, 5);  // its result buffer is freed before it runs
    }
    std::vector<float> all(40 * n);
    m.device->copy_out(all.data(), {y.get()}, all.size() * 4);
    for (std::size_t k = 0; k < 40; ++k)
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(all[k * n + i], given[k][i] * 2) << k;
  }
}

TEST_F(MetalDevice, CommandsAreGathered) {
  const Machine m;
  const auto x = m.device->allocate(400), y = m.device->allocate(400);
  const unsigned long commits = fake().commits, dispatches = fake().dispatches;
  for (int k = 0; k < 640; ++k) m.scale({y.get()}, {x.get()}, 100, 2);
  m.device->synchronise();
  EXPECT_EQ(fake().dispatches - dispatches, 640u);
  EXPECT_LE(fake().commits - commits, 20u);
}

TEST_F(MetalDevice, AKernelThatFailsIsAnErrorOfTheNextWait) {
  for (const bool deferred : {false, true}) {
    fake().deferred = deferred;
    const Machine m;
    const auto x = m.device->allocate(64);
    m.scale({x.get()}, {x.get()}, 1 << 20, 2);  // far beyond the end
    const std::string why = error_of([&] { m.device->synchronise(); });
    EXPECT_NE(why.find("a kernel that was started before failed: scale"), why.npos) << why;
    EXPECT_NE(why.find("not its to touch"), why.npos) << why;
    EXPECT_NE(faults().find("kernel scale"), std::string::npos);
    m.device->synchronise();  // an error is reported once
    const std::vector<float> again = numbers(200, 3);
    EXPECT_EQ(six_times(m, again), expected(again));
  }
}

TEST_F(MetalDevice, DevicesGoWithWorkUnderWay) {
  fake().deferred = true;
  const Machine m;
  const auto x = m.device->allocate(400), y = m.device->allocate(400);
  for (int k = 0; k < 100; ++k) m.scale({y.get()}, {x.get()}, 100, 2);
}

// Each fallible call fails once. The result is an Error or the right answer, no object is left, and the next run is
// right.
TEST_F(MetalDevice, EveryCallMayFail) {
  const std::vector<float> x = numbers(130, 4);
  const long before = fake().objects;
  for (const bool separate : {false, true}) {
    fake().separate_memory = separate;
    const auto everything = [&] {
      const Machine m;
      std::vector<float> y = six_times(m, x);
      move_bytes(*m.device, 5);
      return y;
    };
    fake().fail_at = 0;
    unsigned long calls = fake().calls;
    EXPECT_EQ(everything(), expected(x));
    calls = fake().calls - calls;
    EXPECT_GT(calls, 30u);
    int thrown = 0;
    for (unsigned long k = 1; k <= calls; ++k) {
      fake().fail_at = fake().calls + k;
      try {
        EXPECT_EQ(everything(), expected(x));
      } catch (const Error& e) {
        ++thrown;
        EXPECT_GT(std::strlen(e.what()), 20u);
      }
      fake().fail_at = 0;
      ASSERT_EQ(fake().objects, before) << "call " << k;
      ASSERT_EQ(faults(), "") << "call " << k;
    }
    EXPECT_GT(thrown, 20);
    EXPECT_EQ(everything(), expected(x));
  }
}

// A device continues to work after each failure.
TEST_F(MetalDevice, ADeviceOutlivesItsFailures) {
  fake().separate_memory = true;
  const Machine m;
  const std::vector<float> x = numbers(130, 6);
  EXPECT_EQ(six_times(m, x), expected(x));
  for (unsigned long k = 1; k < 30; ++k) {
    fake().fail_at = fake().calls + k;
    try {
      six_times(m, x);
    } catch (const Error&) {
    }
    fake().fail_at = 0;
    try {
      m.device->synchronise();  // reports errors of work that nothing waited for
    } catch (const Error&) {
    }
    EXPECT_EQ(six_times(m, x), expected(x)) << k;
  }
}

TEST_F(MetalDevice, ThreadsShareADevice) {
  for (const bool deferred : {false, true}) {
    fake().deferred = deferred;
    const Machine m;
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (unsigned k = 0; k < 20; ++k) {
          const std::vector<float> x = numbers(50 + t * 70, k);
          wrong += six_times(m, x) != expected(x);
        }
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  }
}

// ---- as a device of programs ------------------------------------------------------------------

class Twice final : public backends::gpu::GpuKernel {
 public:
  explicit Twice(std::shared_ptr<const backends::gpu::Code> code) : code_(std::move(code)) {}
  std::string name() const override { return "twice"; }
  void enqueue(const Launch& l, backends::gpu::GpuDevice& device) const override {
    const BufferSlice places[] = {l.in[0], l.out};
    const std::int64_t sizes[] = {l.sizes[0], 2};
    device.launch_kernel({.code = code_.get(),
                          .function = Scale,
                          .grid_size = (sizes[0] + 63) / 64,
                          .block_size = 64,
                          .buffers = places,
                          .sizes = sizes});
  }

 private:
  std::shared_ptr<const backends::gpu::Code> code_;
};
class Foreign final : public Kernel {
 public:
  std::string name() const override { return "foreign"; }
};

TEST_F(MetalDevice, KernelsOfAGraphAreLaunched) {
  const Machine m;
  const Twice twice(m.code);
  const std::vector<float> x = numbers(90, 7);
  const auto a = m.device->allocate(360), b = m.device->allocate(360);
  m.device->copy_in({a.get()}, x.data(), 360);
  const BufferSlice in[] = {{a.get()}};
  const std::int64_t sizes[] = {90};
  const Launch launches[] = {{.kernel = &twice, .in = in, .out = {b.get()}, .sizes = sizes, .scratch = {}}};
  m.device->record(launches)->run(0, 1);
  std::vector<float> y(90);
  m.device->copy_out(y.data(), {b.get()}, 360);
  for (std::size_t i = 0; i < 90; ++i) EXPECT_EQ(y[i], x[i] * 2);
  const Foreign foreign;
  const std::string why = error_of(
      [&] { m.device->launch({.kernel = &foreign, .in = in, .out = {b.get()}, .sizes = sizes, .scratch = {}}); });
  EXPECT_NE(why.find("the kernel 'foreign' is not for Fake Metal device"), why.npos) << why;
}

}  // namespace
}  // namespace lc::test
