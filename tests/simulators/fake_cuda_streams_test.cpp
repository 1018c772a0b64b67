// Streams of the simulated driver run when somebody waits for them, and graphs replay what was captured, with new
// parameters too. What CUDA forbids while a stream runs or is captured is refused.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "fake_cuda_streams.h"

using namespace fake_cuda_test;

namespace {

using Driver = FakeCuda;

TEST_F(Driver, DeferredStreamsRunWhenSomebodyWaits) {
  const Program p(add_image());
  const Handle add = p.kernel("add"), scale = p.kernel("scale");
  set("deferred", 1);
  const Handle s = stream(), other = stream(), e = event(), late = event();
  int n = 4, three = 3, ten = 10;
  std::vector<int> pageable{1, 2, 3, 4}, out(4);
  Pinned pinned(4);
  Array<int> y(4), z(4);
  for (int i = 0; i < 4; ++i) pinned[i] = 1;
  EXPECT_EQ(to_device_async(y.address(), pageable.data(), 16, s), 0);
  EXPECT_EQ(to_device_async(z.address(), pinned.memory, 16, s), 0);
  pageable.assign(4, 99);  // its bytes were copied at the call
  pinned[0] = 50;          // these are read when the copy executes
  EXPECT_EQ(launch(add, {1, 32}, {y.argument(), &three, &n}, s), 0);
  EXPECT_EQ(record(e, s), 0);
  EXPECT_EQ(wait(other, e), 0);
  EXPECT_EQ(launch(scale, {1, 32}, {y.argument(), &ten, &n}, other), 0);
  EXPECT_EQ(record(late, other), 0);
  EXPECT_EQ(get("launches"), 0);
  EXPECT_EQ(by_handle("cuEventSynchronize", late), 0);
  EXPECT_EQ(get("launches"), 2) << "the other stream's work, for whose event it waits, is done before";
  EXPECT_EQ(by_handle("cuEventQuery", e), 0);
  EXPECT_EQ(y.values(), (std::vector<int>{40, 50, 60, 70}));
  EXPECT_EQ(z.values(), (std::vector<int>{50, 1, 1, 1}));
  EXPECT_EQ(to_host_async(pinned.memory, y.address(), 16, s), 0);
  EXPECT_EQ(pinned[1], 1) << "not yet";
  EXPECT_EQ(by_handle("cuStreamSynchronize", s), 0);
  EXPECT_EQ(pinned[1], 50);
  EXPECT_EQ(to_host_async(out.data(), y.address(), 16, s), 0);
  EXPECT_EQ(out[3], 70) << "pageable memory is written before the call returns";
  EXPECT_EQ(launch(add, {1, 32}, {y.argument(), &three, &n}, s), 0);
  EXPECT_EQ(to_host(out.data(), y.address(), 16), 0);
  EXPECT_EQ(out[0], 40) << "the default stream does not wait for a stream that was made non-blocking";
  int asked = 0;
  while (by_handle("cuStreamQuery", s) == 600 && asked < 100) ++asked;
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, 100);
  EXPECT_EQ(y.values()[0], 43);
  const Handle blocking = stream(0);
  EXPECT_EQ(launch(add, {1, 32}, {y.argument(), &three, &n}, blocking), 0);
  EXPECT_EQ(y.values()[0], 46) << "it waits for blocking ones";
  float ms = -1;
  EXPECT_EQ(record(e, s), 0);
  EXPECT_EQ(record(late, s), 0);
  const auto elapsed = function<int(float*, Handle, Handle)>("cuEventElapsedTime");
  EXPECT_EQ(elapsed(&ms, e, late), 600);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(elapsed(&ms, e, late), 0);
  EXPECT_GE(ms, 0);
  for (const Handle h : {s, other, blocking}) EXPECT_EQ(by_handle("cuStreamDestroy_v2", h), 0);
  for (const Handle h : {e, late}) EXPECT_EQ(by_handle("cuEventDestroy_v2", h), 0);
}

TEST_F(Driver, MemoryFreedTooEarlyIsAFault) {
  const Program p(add_image());
  const Handle add = p.kernel("add");
  set("deferred", 1);
  int n = 4, by = 1;
  Address a = allocate(16);
  EXPECT_EQ(launch(add, {1, 32}, {&a, &by, &n}), 0);
  EXPECT_EQ(release(a), 0);
  EXPECT_EQ(synchronize(), 700);
  reset();
}

struct KernelParameters {
  Handle function;
  unsigned grid[3], block[3], shared;
  void **arguments, **extra;
  Handle kernel, context;
};

TEST_F(Driver, GraphsReplayWithNewParameters) {
  const Program p(add_image());
  const Handle add = p.kernel("add"), scale = p.kernel("scale"), s = stream();
  for (const long deferred : {0, 1}) {
    set("deferred", deferred);
    Array<int> y(std::vector<int>{1, 2, 3, 4}), z(std::vector<int>{0, 0, 0, 0});
    int n = 4, three = 3, ten = 10;
    Handle graph = nullptr, exec = nullptr;
    ASSERT_EQ(begin_capture(s), 0);
    int status = 0;
    EXPECT_EQ(function<int(Handle, int*)>("cuStreamIsCapturing")(s, &status), 0);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(launch(add, {1, 32}, {y.argument(), &three, &n}, s), 0);
    EXPECT_EQ(launch(scale, {1, 32}, {y.argument(), &ten, &n}, s), 0);
    EXPECT_EQ(
        (function<int(Address, Address, std::size_t, Handle)>("cuMemcpyDtoDAsync_v2")(z.address(), y.address(), 16, s)),
        0);
    ASSERT_EQ(end_capture(s, &graph), 0);
    EXPECT_EQ(synchronize(), 0);
    EXPECT_EQ(y.values()[0], 1) << "captured, not run";
    ASSERT_EQ(instantiate(&exec, graph), 0);
    EXPECT_EQ(graph_launch(exec, s), 0);
    EXPECT_EQ(by_handle("cuStreamSynchronize", s), 0);
    EXPECT_EQ(z.values(), (std::vector<int>{40, 50, 60, 70}));

    Handle nodes[8];
    std::size_t count = 8;
    ASSERT_EQ(function<int(Handle, Handle*, std::size_t*)>("cuGraphGetNodes")(graph, nodes, &count), 0);
    ASSERT_EQ(count, 3u);
    KernelParameters k{};
    const auto get_parameters = function<int(Handle, KernelParameters*)>("cuGraphKernelNodeGetParams_v2");
    const auto set_parameters =
        function<int(Handle, Handle, const KernelParameters*)>("cuGraphExecKernelNodeSetParams_v2");
    EXPECT_EQ(get_parameters(nodes[2], &k), 1) << "a copy";
    ASSERT_EQ(get_parameters(nodes[0], &k), 0);
    EXPECT_EQ(k.function, add);
    EXPECT_EQ(k.block[0], 32u);
    EXPECT_EQ(*static_cast<int*>(k.arguments[1]), 3);
    int five = 5;
    void* arguments[] = {k.arguments[0], &five, k.arguments[2]};
    k.arguments = arguments;
    EXPECT_EQ(graph_launch(exec, s), 0);  // with the parameters it has now
    EXPECT_EQ(set_parameters(exec, nodes[0], &k), 0);
    EXPECT_EQ(graph_launch(exec, s), 0);
    k.block[0] = 2000;
    EXPECT_EQ(set_parameters(exec, nodes[0], &k), 1);
    EXPECT_EQ(set_parameters(exec, &k, &k), 400);
    EXPECT_EQ(by_handle("cuStreamSynchronize", s), 0);
    EXPECT_EQ(z.values()[0], ((40 + 3) * 10 + 5) * 10);

    // updates with another capture's values; one of another shape is refused
    struct {
      int result;
      Handle node, from;
    } outcome{};
    const auto update = function<int(Handle, Handle, void*)>("cuGraphExecUpdate_v2");
    Handle second = nullptr;
    ASSERT_EQ(begin_capture(s), 0);
    EXPECT_EQ(launch(add, {1, 32}, {z.argument(), &three, &n}, s), 0);
    EXPECT_EQ(launch(add, {1, 32}, {z.argument(), &three, &n}, s), 0);
    EXPECT_EQ(
        (function<int(Address, Address, std::size_t, Handle)>("cuMemcpyDtoDAsync_v2")(y.address(), z.address(), 16, s)),
        0);
    ASSERT_EQ(end_capture(s, &second), 0);
    EXPECT_EQ(update(exec, second, &outcome), 0);
    EXPECT_EQ(graph_launch(exec, s), 0);
    EXPECT_EQ(by_handle("cuStreamSynchronize", s), 0);
    EXPECT_EQ(y.values()[0], 4356);
    Handle third = nullptr;
    ASSERT_EQ(begin_capture(s), 0);
    EXPECT_EQ(launch(add, {1, 32}, {z.argument(), &three, &n}, s), 0);
    ASSERT_EQ(end_capture(s, &third), 0);
    EXPECT_EQ(update(exec, third, &outcome), 910);
    EXPECT_NE(outcome.result, 0);
    EXPECT_EQ(get("graphs"), 3);
    for (const Handle g : {graph, second, third}) EXPECT_EQ(by_handle("cuGraphDestroy", g), 0);
    EXPECT_EQ(graph_launch(exec, s), 0) << "it lives on without its graph";
    EXPECT_EQ(by_handle("cuGraphExecDestroy", exec), 0);
    EXPECT_EQ(synchronize(), 0);
    EXPECT_EQ(y.values()[0], 4362);
  }
  EXPECT_EQ(by_handle("cuStreamDestroy_v2", s), 0);
}

TEST_F(Driver, CapturesRefuseWhatCannotBeCaptured) {
  const Handle s = stream(), other = stream(), blocking = stream(0), e = event();
  Array<int> y(4);
  Handle graph = nullptr;
  Address a = 0;
  const auto refused = [&](int mode, const std::function<int()>& call, int code, int end) {
    EXPECT_EQ(begin_capture(s, mode), 0);
    EXPECT_EQ(call(), code);
    EXPECT_EQ(end_capture(s, &graph), end);
    if (end == 0) by_handle("cuGraphDestroy", graph);
  };
  const auto allocation = [&] { return function<int(Address*, std::size_t)>("cuMemAlloc_v2")(&a, 4); };
  refused(0, allocation, 900, 901);
  refused(
      2,
      [&] {
        const int code = allocation();
        release(a);
        return code;
      },
      0, 0);
  refused(
      1, [&] { return by_handle("cuStreamSynchronize", s); }, 900, 901);
  refused(1, synchronize, 900, 901);
  refused(
      1, [&] { return record(e, s) + by_handle("cuEventSynchronize", e); }, 907, 0);
  refused(
      1, [&] { return record(e, s) + wait(other, e) + fill_async(y.address(), 1, 4, other); }, 0, 904);
  refused(
      1,
      [&] {
        return record(e, s) + wait(other, e) + fill_async(y.address(), 1, 4, other) + record(e, other) + wait(s, e);
      },
      0, 0);
  EXPECT_EQ(record(e, other), 0);
  refused(
      1, [&] { return wait(s, e); }, 905, 901);
  EXPECT_EQ(begin_capture(blocking), 0);
  EXPECT_EQ(fill_async(y.address(), 1, 4, nullptr), 906);
  EXPECT_EQ(end_capture(blocking, &graph), 901);
  EXPECT_EQ(begin_capture(nullptr), 900);
  EXPECT_EQ(end_capture(s, &graph), 1) << "none began";
}

}  // namespace
