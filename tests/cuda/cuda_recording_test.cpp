// Recorded launches become CUDA graphs that follow new addresses and sizes, and a repeated run allocates nothing.
#include <cstdlib>
#include <new>

#include "cuda_fixture.h"
#include "lightcone/backends/cuda/device.h"

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

// Counts allocations by this program's own code. The simulated driver's calls come from another library and are not
// counted.
extern "C" char __executable_start, etext;
namespace {
thread_local long own_allocations = 0;
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  const char* caller = static_cast<const char*>(__builtin_return_address(0));
  own_allocations += caller >= &__executable_start && caller < &etext;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

// y = x * factor; enqueue() allocates no memory.
class LeanKernel final : public backends::gpu::GpuKernel {
 public:
  explicit LeanKernel(std::shared_ptr<const backends::gpu::Code> code) : code_(std::move(code)) {}
  std::string name() const override { return "lean"; }
  void enqueue(const Launch& l, backends::gpu::GpuDevice& device) const override {
    const BufferSlice places[] = {l.in[0], l.out};
    device.launch_kernel({.code = code_.get(),
                          .grid_size = (l.sizes[0] + 63) / 64,
                          .block_size = 64,
                          .buffers = places,
                          .sizes = l.sizes});
  }

 private:
  std::shared_ptr<const backends::gpu::Code> code_;
};

// A kernel that reads its operand on the host, which a CUDA graph cannot do. Without `says_so` it does not declare
// this.
class HostKernel final : public backends::gpu::GpuKernel {
 public:
  explicit HostKernel(bool says_so) : says_so_(says_so) {}
  bool records() const override { return !says_so_; }
  std::string name() const override { return "on the host"; }
  void enqueue(const Launch& l, backends::gpu::GpuDevice& device) const override {
    std::vector<float> x = take<float>(device, l.in[0], static_cast<std::size_t>(l.sizes[0]));
    for (float& v : x) v = -v;
    put(device, l.out, x);
  }

 private:
  bool says_so_;
};

// Adds its operand to the result sizes[1] times, with one launch each.
class LoopKernel final : public backends::gpu::GpuKernel {
 public:
  explicit LoopKernel(std::shared_ptr<const backends::gpu::Code> code) : code_(std::move(code)) {}
  std::string name() const override { return "loop"; }
  void enqueue(const Launch& l, backends::gpu::GpuDevice& device) const override {
    const BufferSlice places[] = {l.in[0], l.out};
    for (std::int64_t k = 0; k < l.sizes[1]; ++k)
      device.launch_kernel(
          {.code = code_.get(), .function = 1, .block_size = 1, .buffers = places, .sizes = l.sizes.first(1)});
  }

 private:
  std::shared_ptr<const backends::gpu::Code> code_;
};

// Writes zeros to its result, then copies half of its operand there.
class HalfKernel final : public backends::gpu::GpuKernel {
 public:
  std::string name() const override { return "half"; }
  void enqueue(const Launch& l, backends::gpu::GpuDevice& device) const override {
    const auto bytes = static_cast<std::size_t>(l.sizes[0]) * 4;
    device.zero(l.out, bytes);
    device.copy(l.out, l.in[0], bytes / 2);
  }
};

class PartKernel final : public Kernel {
 public:
  std::string name() const override { return "part"; }
  std::vector<Dim> sizes() const override { return {4, 40}; }
  std::optional<Dim> part() const override { return Dim(40); }
};

class StrangeKernel final : public Kernel {
 public:
  std::string name() const override { return "strange"; }
};

// y = 2 x, then z = 3 y.
struct Chain {
  Fake fake;
  std::shared_ptr<backends::gpu::GpuDevice> d = backends::cuda::open_device(fake_options());
  std::shared_ptr<const backends::gpu::Code> code = d->compile(kText, kKernels);
  TextKernel scale{code, 0}, add{code, 1};
  std::unique_ptr<Buffer> x = d->allocate(4000), y = d->allocate(4000), z = d->allocate(4000),
                          other = d->allocate(4000);
  Launches l{2};
  std::unique_ptr<Recording> recording;

  Chain() {
    set(100, {x.get()});
    recording = d->record(l.all);
    put(*d, {x.get()}, iota(1000));
    put(*d, {other.get()}, iota(1000, 5000));
  }
  void set(std::int64_t n, BufferSlice from, std::int64_t factor = 2) {
    l.set(0, scale, {from}, {y.get()}, {n, factor});
    l.set(1, scale, {{y.get()}}, {z.get()}, {n, 3});
    if (recording) recording->update();
  }
  // Runs the recording and checks z.
  void expect(std::size_t n, float first, float factor, const char* what) {
    d->zero({z.get()}, 4000);
    recording->run(0, 2);
    std::vector<float> want = iota(n, first);
    for (float& v : want) v *= factor;
    want.resize(1000);
    EXPECT_EQ(take<float>(*d, {z.get()}, 1000), want) << what;
  }
};

}  // namespace

TEST(CudaRecording, BecomesAGraphThatFollowsPlacesAndSizes) {
  for (const int deferred : {0, 1}) {
    Chain c;
    c.fake.set("deferred", deferred);
    c.expect(100, 0, 6, "launch by launch");
    EXPECT_EQ(c.fake.get("graph_execs"), 0);
    c.expect(100, 0, 6, "captured");
    EXPECT_EQ(c.fake.get("graph_execs"), 1);
    const long calls = c.fake.get("calls");
    c.recording->run(0, 2);
    EXPECT_LE(c.fake.get("calls") - calls, 2);  // set the thread's context, launch the graph
    c.set(130, {c.x.get()});
    c.expect(130, 0, 6, "more groups");
    c.set(7, {c.other.get(), 400}, 4);
    c.expect(7, 5100, 12, "another place");
    c.set(7, {c.other.get(), 400}, 4);
    c.expect(7, 5100, 12, "nothing changed");
    c.set(1000, {c.x.get()});
    for (int k = 0; k < 3; ++k) c.expect(1000, 0, 6, "again");
    EXPECT_EQ(c.fake.get("graph_execs"), 1);
  }
  EXPECT_EQ(Fake().live(), 0);
}

// A run that was started before an update uses the sizes and addresses of its start.
TEST(CudaRecording, ARunKeepsWhatItWasStartedWith) {
  Chain c;
  c.fake.set("deferred", 1);
  for (int k = 0; k < 3; ++k) c.recording->run(0, 2);
  const auto kept = c.d->allocate(400);
  for (int k = 0; k < 5; ++k) {
    c.set(100, {c.x.get()}, k);
    c.recording->run(0, 2);
    c.d->copy({kept.get(), static_cast<std::size_t>(k) * 4}, {c.z.get(), 12}, 4);
  }
  EXPECT_EQ(take<float>(*c.d, {kept.get()}, 5), (std::vector<float>{0, 9, 18, 27, 36}));
}

TEST(CudaRecording, PartsRunLaunchByLaunch) {
  Chain c;
  for (int k = 0; k < 3; ++k) {
    c.d->zero({c.z.get()}, 4000);
    c.recording->run(0, 1);
    EXPECT_EQ(take<float>(*c.d, {c.y.get()}, 3), (std::vector<float>{0, 2, 4}));
    EXPECT_EQ(take<float>(*c.d, {c.z.get()}, 3), (std::vector<float>{0, 0, 0}));
    c.recording->run(1, 2);
    EXPECT_EQ(take<float>(*c.d, {c.z.get()}, 3), (std::vector<float>{0, 6, 12}));
    c.recording->run(1, 1);
    c.expect(100, 0, 6, "whole");
  }
}

TEST(CudaRecording, OtherStepsMakeOtherGraphs) {
  Chain c;
  for (int k = 0; k < 2; ++k) c.expect(100, 0, 6, "as it was");
  c.set(0, {c.x.get()});  // an empty grid: nothing is launched
  for (int k = 0; k < 4; ++k) c.expect(0, 0, 6, "nothing");
  c.set(50, {c.x.get()});
  for (int k = 0; k < 4; ++k) c.expect(50, 0, 6, "something");
  for (int k = 0; k < 6; ++k) {
    c.set(k % 2 ? 20 : 0, {c.x.get()});
    c.expect(k % 2 ? 20 : 0, 0, 6, "in turn");
  }
}

TEST(CudaRecording, CopiesZerosAndPartsAreInTheGraph) {
  Chain c;
  const HalfKernel half;
  const PartKernel part;
  Launches l(3);
  l.set(0, c.scale, {{c.x.get()}}, {c.y.get()}, {200, 2});
  l.set(1, half, {{c.y.get()}}, {c.z.get()}, {200});
  l.set(2, part, {{c.z.get()}}, {c.other.get()}, {400, 40});
  const auto recording = c.d->record(l.all);
  std::vector<float> want = iota(90, 10);
  for (float& v : want) v *= 2;
  want.resize(100);
  for (int k = 0; k < 5; ++k) {
    c.d->zero({c.other.get()}, 4000);
    recording->run(0, 3);
    EXPECT_EQ(take<float>(*c.d, {c.other.get()}, 100), want) << k;
  }
  EXPECT_EQ(c.fake.get("graph_execs"), 1);
  l.set(2, part, {{c.y.get()}}, {c.z.get()}, {400, 40});  // other addresses of a copy
  recording->update();
  std::vector<float> doubled = iota(100, 10);
  for (float& v : doubled) v *= 2;
  for (int k = 0; k < 4; ++k) {
    c.d->zero({c.z.get()}, 4000);
    recording->run(0, 3);
    EXPECT_EQ(take<float>(*c.d, {c.z.get()}, 100), doubled) << k;
  }
}

TEST(CudaRecording, WhatAGraphCannotHoldStandsBetweenTwo) {
  for (const bool says_so : {true, false}) {
    Chain c;
    const HostKernel host(says_so);
    Launches l(4);
    l.set(0, c.scale, {{c.x.get()}}, {c.y.get()}, {100, 2});
    l.set(1, host, {{c.y.get()}}, {c.z.get()}, {100});
    l.set(2, c.scale, {{c.z.get()}}, {c.other.get()}, {100, 5});
    l.set(3, c.add, {{c.x.get()}}, {c.other.get()}, {100});
    const auto recording = c.d->record(l.all);
    for (int k = 0; k < 5; ++k) {
      if (k == 3) {
        l.set(0, c.scale, {{c.x.get()}}, {c.y.get()}, {100, 7});
        recording->update();
      }
      c.d->zero({c.other.get()}, 4000);
      recording->run(0, 4);
      std::vector<float> want = iota(100);
      for (float& v : want) v = v * static_cast<float>(k < 3 ? 2 : 7) * -5 + v;
      EXPECT_EQ(take<float>(*c.d, {c.other.get()}, 100), want) << k;
    }
    EXPECT_EQ(c.fake.get("graph_execs"), 2);
  }
}

TEST(CudaRecording, ALoopOfManyStepsIsInTheGraphUnlessItIsTooLong) {
  for (const std::int64_t steps : {300, 70000}) {
    Chain c;
    const LoopKernel loop(c.code);
    Launches l(2);
    l.set(0, c.scale, {{c.x.get()}}, {c.y.get()}, {1, 0});
    l.set(1, loop, {{c.x.get(), 4}}, {c.y.get()}, {1, steps});
    const auto recording = c.d->record(l.all);
    for (int k = 0; k < 3; ++k) {
      recording->run(0, 2);
      EXPECT_EQ(take<float>(*c.d, {c.y.get()}, 1)[0], static_cast<float>(steps));
    }
    const long calls = c.fake.get("calls");
    recording->run(0, 2);
    EXPECT_EQ(c.fake.get("calls") - calls < 10, steps == 300);
  }
}

TEST(CudaRecording, AKernelOfAnotherDeviceIsRefused) {
  Chain c;
  const StrangeKernel strange;
  c.l.all[1].kernel = &strange;
  EXPECT_PRED2(contains, error_of([&] { c.d->record(c.l.all); }), "the kernel 'strange' is not for");
  EXPECT_PRED2(contains, error_of([&] { c.d->launch(c.l.all[1]); }), "the kernel 'strange' is not for");
}

TEST(CudaRecording, ARunAllocatesNothing) {
  Chain c;
  const LeanKernel lean(c.code);
  Launches l(2);
  l.set(0, lean, {{c.x.get()}}, {c.y.get()}, {100, 2});
  l.set(1, lean, {{c.y.get()}}, {c.z.get()}, {100, 3});
  const auto recording = c.d->record(l.all);
  const std::vector<float> x = iota(1000);
  std::vector<float> z(1000);
  const auto step = [&](std::int64_t n) {
    l.sizes[0][0] = l.sizes[1][0] = n;
    recording->update();
    c.d->copy_in({c.x.get()}, x.data(), 4000);
    recording->run(0, 2);
    c.d->copy_out(z.data(), {c.z.get()}, 4000);
  };
  for (int k = 0; k < 4; ++k) step(100 + k);
  const long before = own_allocations;
  for (int k = 0; k < 20; ++k) step(200 + k);
  EXPECT_EQ(own_allocations, before);
  EXPECT_EQ(z[218], 218 * 6);
  const std::unique_ptr<int> counted(new int(1));
  EXPECT_GT(own_allocations, before);  // proves that allocations are counted
}

TEST(CudaRecording, WithNoLaunchesDoesNothing) {
  Chain c;
  const auto recording = c.d->record({});
  for (int k = 0; k < 3; ++k) recording->run(0, 0);
}
