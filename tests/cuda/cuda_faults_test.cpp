// Every call of the CUDA driver and of NVRTC fails in turn with every kind of error. Each failure gives an Error or is
// handled, nothing leaks, and the next run is right.
#include "cuda_fixture.h"

using namespace lc;
using test::Fake;
using test::fake_options;
using test::iota;
using test::kKernels;
using test::kText;
using test::Launches;
using test::put;
using test::take;
using test::TextKernel;

namespace {

constexpr long kInvalid = 1, kOutOfMemory = 2, kIllegal = 700, kUnaligned = 716, kFailed = 719, kUnknown = 999;

// Uses each function of a device once: computes 2x + y, in committed memory, with a recording that is updated.
void story(const CudaOptions& options) {
  const auto d = backends::cuda::open_device(options);
  const auto code = d->compile(kText, kKernels);
  const TextKernel scale(code, 0), add(code, 1);
  const auto x = d->allocate(4000), more = d->allocate(100);
  const auto y = d->reserve(100 << 20);
  if (!y || !y->commit(3 << 20, 4000)) throw Error("story", "there is no memory");
  const BufferSlice out{y.get(), 3 << 20};
  put(*d, {x.get()}, iota(1000));
  Launches l(2);
  l.set(0, scale, {{x.get()}}, out, {500, 2});
  l.set(1, add, {{x.get()}}, out, {500});
  const auto recording = d->record(l.all);
  for (int run = 0; run < 4; ++run) {
    if (run == 3) {
      l.set(0, scale, {{x.get()}}, out, {1000, 4});
      recording->update();
    }
    d->zero({more.get()}, 100);
    recording->run(0, 2);
    d->copy({more.get()}, out, 100);
    std::vector<float> want = iota(25);
    for (float& v : want) v *= static_cast<float>(run < 3 ? 3 : 5);
    if (take<float>(*d, {more.get()}, 25) != want) throw std::runtime_error("the result is wrong");
  }
  d->synchronise();
}

}  // namespace

class CudaFaults : public ::testing::TestWithParam<std::pair<long, int>> {};
INSTANTIATE_TEST_SUITE_P(AllKinds, CudaFaults,
                         ::testing::Values(std::pair(kInvalid, 1), std::pair(kOutOfMemory, 0), std::pair(kIllegal, 0),
                                           std::pair(kIllegal, 1)));

TEST_P(CudaFaults, InEveryCallInTurn) {
  const auto [code, deferred] = GetParam();
  Fake fake;
  fake.set("deferred", deferred);
  const TempDir dir;
  const CudaOptions kept = fake_options(dir / "cache");
  story(kept);
  const long first = fake.get("calls");
  story(kept);
  const long all = fake.get("calls") - first;
  ASSERT_GT(all, 80);
  long errors = 0;
  for (long n = 1; n <= all; ++n) {
    SCOPED_TRACE(str_cat("error ", code, " at call ", n, " of ", all));
    fake.fail(n, code);
    const std::string said = error_of([&] { story(kept); });
    fake.fail(0, 0);
    EXPECT_EQ(fake.live(), 0) << said;
    if (said == "no error") continue;
    ++errors;
    EXPECT_GT(said.size(), 20u);
    story(kept);
    EXPECT_EQ(fake.live(), 0);
    if (HasFailure()) return;
  }
  std::printf("error %ld: %ld calls, %ld errors\n", code, all, errors);
  EXPECT_GT(errors, all / 3);
}

TEST(CudaFaults, OfTheCompiler) {
  Fake fake;
  const auto d = backends::cuda::open_device(fake_options());
  const auto compile = [&] { return d->compile(kText, kKernels); };
  const long first = fake.get("calls"), live = fake.live();
  compile();
  const long all = fake.get("calls") - first;
  ASSERT_GT(all, 10);
  for (const long code : {kInvalid, kOutOfMemory, 7l})
    for (long n = 1; n <= all; ++n) {
      fake.fail(n, code);
      try {
        compile();
      } catch (const Error&) {
      }
      fake.fail(0, 0);
      EXPECT_EQ(fake.live(), live) << code << " at call " << n;
    }
  EXPECT_NE(compile(), nullptr);
  fake.set("fail_compiles", 1);
  EXPECT_PRED2(contains, error_of(compile), "the kernels 'scale', 'add' do not compile for sm_90a");
}

// ---- a device that is lost --------------------------------------------------------------------

TEST(CudaLost, SaysSoAtOnceUntilItIsOpenedAnew) {
  for (const long code : {kIllegal, kFailed, kUnaligned, 46l, 702l, 714l, 715l, 717l, kUnknown}) {
    Fake fake;
    {
      const auto d = backends::cuda::open_device(fake_options());
      const auto b = d->allocate(100);
      float x = 1;
      fake.fail(2, code);  // the second of the two driver calls of an operation
      const std::string said = error_of([&] { d->zero({b.get()}, 100); });
      EXPECT_PRED2(contains, said, "the CUDA device 0 was lost") << code;
      EXPECT_PRED2(contains, said, "Start the process anew");
      EXPECT_PRED2(contains, said, str_cat(code));
      const long calls = fake.get("calls");
      for (const std::function<void()>& f : std::vector<std::function<void()>>{
               [&] { d->copy_in({b.get()}, &x, 4); }, [&] { d->copy_out(&x, {b.get()}, 4); }, [&] { d->synchronise(); },
               [&] { d->allocate(100); }, [&] { d->reserve(100 << 20); }, [&] { d->zero({b.get()}, 4); }})
        EXPECT_PRED2(contains, error_of(f), "the CUDA device 0 was lost") << code;
      EXPECT_LE(fake.get("calls") - calls, 20);  // no calls except those that compose the message
      const auto again = backends::cuda::open_device(fake_options());
      const auto c = again->allocate(400);
      put(*again, {c.get()}, iota(100));
      EXPECT_EQ(take<float>(*again, {c.get()}, 100), iota(100)) << code;
      EXPECT_THROW(d->synchronise(), Error);  // the lost device stays lost
    }
    EXPECT_EQ(fake.live(), 0) << code;
  }
}

// An H200 (driver 580) behaves like this: after an illegal access, the same process cannot open the device again.
TEST(CudaLost, ADriverThatDoesNotGiveItBackSaysWhatToDo) {
  const test::SecondDriver second;  // stays lost until the process ends
  Fake fake(second.path);
  CudaOptions o = fake_options();
  o.driver = o.compiler = second.path;
  fake.set("sticky", 1);
  {
    const auto d = backends::cuda::open_device(o);
    const auto code = d->compile("extern \"C\" __global__ void wild(float* x) { x[0] = 1; }", {"wild"});
    const BufferSlice nowhere[] = {BufferSlice{}};
    EXPECT_PRED2(contains, error_of([&] {
                   d->launch_kernel({.code = code.get(), .buffers = nowhere, .sizes = {}});
                   d->synchronise();
                 }),
                 "Start the process anew");
    EXPECT_PRED2(contains, error_of([&] { backends::cuda::open_device(o); }), "is not given back to the same process");
    EXPECT_PRED2(contains, error_of([&] { d->synchronise(); }), "was lost");
  }
  EXPECT_PRED2(contains, error_of([&] { backends::cuda::open_device(o); }), "is not given back to the same process");
}

// A kernel writes to an invalid address. A later call reports it.
TEST(CudaLost, ByAKernelForAllWhoOpenedIt) {
  for (const int deferred : {0, 1}) {
    Fake fake;
    fake.set("deferred", deferred);
    {
      const auto a = backends::cuda::open_device(fake_options()), b = backends::cuda::open_device(fake_options());
      const auto code = a->compile("extern \"C\" __global__ void wild(float* x) { x[0] = 1; }", {"wild"});
      const auto of_b = b->allocate(100);
      const BufferSlice nowhere[] = {BufferSlice{}};
      const std::string said = error_of([&] {
        a->launch_kernel({.code = code.get(), .buffers = nowhere, .sizes = {}});
        a->synchronise();
      });
      EXPECT_PRED2(contains, said, "was lost: an illegal memory access");
      EXPECT_PRED2(contains, error_of([&] { b->zero({of_b.get()}, 100); }), "was lost");
      EXPECT_PRED2(contains, error_of([&] { a->compile(kText, kKernels); }), "was lost");
      story(fake_options());
    }
    EXPECT_EQ(fake.live(), 0);
  }
}

TEST(CudaLost, InTheMiddleOfRecordings) {
  Fake fake;
  const TempDir dir;
  const CudaOptions kept = fake_options(dir / "cache");
  story(kept);
  const long first = fake.get("launches");
  story(kept);
  const long launches = fake.get("launches") - first;
  ASSERT_EQ(launches, 8);
  for (long n = 1; n <= launches; ++n) {
    fake.set("lost_at", fake.get("launches") + n);
    EXPECT_PRED2(contains, error_of([&] { story(kept); }), "was lost") << n;
    fake.set("lost_at", 0);
    EXPECT_EQ(fake.live(), 0) << n;
    story(kept);
  }
}

// At the end of a process the driver may be unloaded before the last objects are destroyed.
TEST(CudaLost, ADriverThatHasShutDownIsNotAsked) {
  const test::SecondDriver second;  // no other test uses it afterwards
  Fake fake(second.path);
  CudaOptions o = fake_options();
  o.driver = second.path;
  auto d = backends::cuda::open_device(o);
  auto b = d->allocate(100);
  fake.fail(1, 4);
  EXPECT_PRED2(contains, error_of([&] { d->synchronise(); }), "the CUDA driver has shut down");
  const long calls = fake.get("calls");
  b.reset(), d.reset();
  EXPECT_EQ(fake.get("calls"), calls);
}

TEST(CudaFaultsOfMemory, OneThatComesFirstIsTriedAgain) {
  Fake fake;
  const auto d = backends::cuda::open_device(fake_options());
  d->allocate(1 << 20);        // stays in the allocator's cache
  fake.fail(2, kOutOfMemory);  // the context's call, then the allocation
  EXPECT_EQ(d->allocate(3 << 20)->size(), 3u << 20);
  EXPECT_EQ(fake.get("allocations"), 1);  // the cached block was released
}
