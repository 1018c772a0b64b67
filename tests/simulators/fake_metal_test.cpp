// The simulated Metal reports each mistake of a host: unknown messages, freed objects, open encoders, missing arguments
// and ranges.
#include <algorithm>
#include <thread>

#include "../metal/fake.h"
#include "lightcone/backends/metal/objc.h"
#include "paths.h"

namespace lc::test {
namespace {

using backends::metal::Id;
using backends::metal::Pool;
using backends::metal::Ref;
using backends::metal::Runtime;
using backends::metal::Size;

constexpr unsigned long kBytes = 64;
constexpr const char* kText = R"(
kernel void k(device float* y [[buffer(0)]], constant long* n [[buffer(1)]], uint id [[thread_position_in_grid]]) {
  y[id] = float(n[0]);
}
kernel void shares(device float* y [[buffer(0)]], threadgroup float* t [[threadgroup(0)]]) { y[0] = 1; }
)";

// A device with all objects that a kernel needs, created by messages.
class FakeMetalTest : public MetalTest {
 protected:
  template <class R = Id, class... A>
  R send(const Ref& to, const char* selector, A... arguments) {
    return r.send<R>(to.get(), selector, arguments...);
  }
  Ref owned(Id object) { return Ref::owned(r, object); }
  Ref kept(Id object) { return Ref::retained(r, object); }

  Ref pipeline(const char* name) {
    const Ref text = backends::metal::make_string(r, kText), wanted = backends::metal::make_string(r, name);
    const Ref options = owned(r.send(r.send(r.find_class("MTLCompileOptions"), "alloc"), "init"));
    send<void>(options, "setMathMode:", 0l);
    send<void>(options, "setMathFloatingPointFunctions:", 1l);
    Id error = nullptr;
    const Ref library = owned(send(device, "newLibraryWithSource:options:error:", text.get(), options.get(), &error));
    const Ref function = owned(send(library, "newFunctionWithName:", wanted.get()));
    return owned(send(device, "newComputePipelineStateWithFunction:error:", function.get(), &error));
  }
  // Returns an encoder with the kernel and its arguments.
  Ref encoder(const Ref& command, const char* name = "k") {
    Ref e = kept(send(command, "computeCommandEncoder"));
    send<void>(e, "setComputePipelineState:", pipeline(name).get());
    send<void>(e, "setBuffer:offset:atIndex:", buffer.get(), 0ul, 0ul);
    const std::int64_t seven = 7;
    send<void>(e, "setBytes:length:atIndex:", static_cast<const void*>(&seven), 8ul, 1ul);
    return e;
  }
  void dispatch(const Ref& e, Size groups = {1, 1, 1}, Size threads = {4, 1, 1}) {
    send<void>(e, "dispatchThreadgroups:threadsPerThreadgroup:", groups, threads);
  }
  void end(const Ref& e) { send<void>(e, "endEncoding"); }
  void copy(const Ref& blit, unsigned long from, unsigned long to, unsigned long n) {
    send<void>(blit, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", buffer.get(), from, other.get(),
               to, n);
  }
  // Expects exactly one fault, with this text.
  static void expect_fault(const char* part) {
    const std::string seen = faults();
    EXPECT_NE(seen.find(part), seen.npos) << "wanted: " << part << "\nseen: " << seen;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 1) << seen;
  }
  Ref command() { return kept(send(queue, "commandBuffer")); }

  void TearDown() override {
    buffer.reset(), other.reset(), queue.reset(), device.reset(), pool.reset();
    MetalTest::TearDown();
  }
  void SetUp() override {
    MetalTest::SetUp();
    pool = std::make_unique<Pool>(r);
    device = owned(r.default_device());
    queue = owned(send(device, "newCommandQueue"));
    buffer = owned(send(device, "newBufferWithLength:options:", kBytes, 0ul));
    other = owned(send(device, "newBufferWithLength:options:", kBytes, 0ul));
  }

  const Runtime& r = Runtime::load(paths::kFakeMetal);
  std::unique_ptr<Pool> pool;
  Ref device, queue, buffer, other;
};

TEST_F(FakeMetalTest, StructuresAreReturnedAndPassedByValue) {
  const Size most = send<Size>(device, "maxThreadsPerThreadgroup");
  EXPECT_EQ(most.width + most.height + most.depth, 3 * 1024u);
  const Ref c = command(), e = encoder(c);
  dispatch(e, {3, 1, 1}, {4, 1, 1});
  end(e);
  send<void>(c, "commit");
  send<void>(c, "waitUntilCompleted");
  EXPECT_EQ(send<unsigned long>(c, "status"), 4ul);
  const auto* y = send<const float*>(buffer, "contents");
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y[i], i < 12 ? 7.0f : 0.0f);
}

TEST_F(FakeMetalTest, MessagesThatNobodyUnderstands) {
  EXPECT_EQ(send(device, "newBufferWithLenght:options:", 8ul, 0ul), nullptr);
  expect_fault("a MTLDevice does not understand newBufferWithLenght:options:");
  EXPECT_FALSE(r.responds(device.get(), "newBufferWithLenght:options:"));
  EXPECT_TRUE(r.responds(device.get(), "name"));
  EXPECT_EQ(r.send(nullptr, "anything"), nullptr);  // nil accepts every message
  EXPECT_EQ(r.find_class("MTLNothing"), nullptr);
}

TEST_F(FakeMetalTest, ObjectsThatWereFreed) {
  const Id gone = send(device, "newBufferWithLength:options:", 8ul, 0ul);
  r.release(gone);
  EXPECT_EQ(r.send<unsigned long>(gone, "length"), 0ul);
  expect_fault("sends length to a freed MTLBuffer");
  r.release(gone);
  expect_fault("releases a freed MTLBuffer");
  Id pooled = nullptr;
  {
    const Pool inner(r);
    pooled = send(queue, "commandBuffer");
  }
  r.send<void>(pooled, "commit");
  expect_fault("sends commit to a freed MTLCommandBuffer");
  std::thread([&] { send(device, "name"); }).join();
  EXPECT_EQ(faults(), "a NSString is autoreleased without a pool\n");
  --fake().objects;  // excluded from the count, because it is never freed
}

TEST_F(FakeMetalTest, EncodersEndBeforeTheyAreCommitted) {
  const Ref c = command();
  const Ref e = encoder(c);
  send<void>(c, "commit");
  expect_fault("committed while an encoder is open");
  EXPECT_EQ(send(c, "blitCommandEncoder"), nullptr);
  expect_fault("a second encoder while one is open");
  end(e);
  dispatch(e);
  expect_fault("a command for an encoder that has ended");
  end(e);
  expect_fault("a command for an encoder that has ended");
  send<void>(c, "waitUntilCompleted");
  expect_fault("waits for a command buffer that was not committed");
  send<void>(c, "commit");
  send<void>(c, "commit");
  expect_fault("committed twice");
  EXPECT_EQ(send(c, "computeCommandEncoder"), nullptr);
  expect_fault("for a command buffer that was committed");
  {
    const Pool inner(r);
    const Ref d = command();
    kept(send(d, "blitCommandEncoder"));
  }
  expect_fault("freed before endEncoding");
}

TEST_F(FakeMetalTest, KernelsHaveAllTheirArguments) {
  const Ref c = command();
  const Ref bare = kept(send(c, "computeCommandEncoder"));
  dispatch(bare);
  expect_fault("without a pipeline");
  send<void>(bare, "setComputePipelineState:", pipeline("k").get());
  send<void>(bare, "setBuffer:offset:atIndex:", buffer.get(), 0ul, 0ul);
  dispatch(bare);
  expect_fault("of k: buffer 1 is not bound");
  end(bare);
  const Ref e = encoder(c);
  send<void>(e, "setBuffer:offset:atIndex:", buffer.get(), 2ul, 0ul);
  dispatch(e);
  expect_fault("not aligned to its type");
  send<void>(e, "setBuffer:offset:atIndex:", buffer.get(), kBytes + 1, 0ul);
  expect_fault("from behind its end on");
  send<void>(e, "setBuffer:offset:atIndex:", buffer.get(), 0ul, 31ul);
  expect_fault("no such buffer index");
  send<void>(e, "setBytes:length:atIndex:", static_cast<const void*>(kText), 4097ul, 1ul);
  expect_fault("setBytes: with 4097 bytes");
  send<void>(e, "setBuffer:offset:atIndex:", buffer.get(), 0ul, 0ul);
  dispatch(e, {0, 1, 1});
  expect_fault("of no groups");
  dispatch(e, {1, 1, 1}, {1025, 1, 1});
  expect_fault("groups of 1025 threads");
  end(e);
  const Ref s = encoder(c, "shares");
  dispatch(s);
  expect_fault("is group memory, and it has none");
  send<void>(s, "setThreadgroupMemoryLength:atIndex:", 20ul, 0ul);
  expect_fault("no multiple of 16");
  send<void>(s, "setThreadgroupMemoryLength:atIndex:", 32784ul, 0ul);
  dispatch(s);
  expect_fault("too much group memory");
  end(s);
}

TEST_F(FakeMetalTest, BlitsStayInTheirBuffers) {
  const Ref c = command(), b = kept(send(c, "blitCommandEncoder"));
  copy(b, 0, 4, kBytes);
  expect_fault("beyond the end");
  copy(b, 2, 0, 4);
  expect_fault("multiples of 4");
  copy(b, 0, 0, 0);
  expect_fault("of no bytes");
  send<void>(b, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", buffer.get(), 0ul, buffer.get(), 8ul,
             16ul);
  expect_fault("ranges that overlap");
  send<void>(b, "fillBuffer:range:value:", buffer.get(), backends::metal::Range{kBytes - 4, 8},
             static_cast<unsigned char>(1));
  expect_fault("beyond the end");
  end(b);
}

TEST_F(FakeMetalTest, MemoryIsGuarded) {
  Ref odd = owned(send(device, "newBufferWithLength:options:", 10ul, 0ul));
  send<char*>(odd, "contents")[10] = 1;
  odd.reset();
  expect_fault("wrote behind the end of a buffer of 10 bytes");
  EXPECT_EQ(send(device, "newBufferWithLength:options:", 0ul, 0ul), nullptr);
  expect_fault("a buffer of no bytes");
  const Ref of_gpu = owned(send(device, "newBufferWithLength:options:", 8ul, 32ul));
  EXPECT_EQ(send<void*>(of_gpu, "contents"), nullptr);
  expect_fault("contents of a private buffer");
  const Ref small = owned(send(device, "newBufferWithLength:options:", 8ul, 0ul)), c = command(), e = encoder(c);
  send<void>(e, "setBuffer:offset:atIndex:", small.get(), 0ul, 0ul);
  dispatch(e);  // four numbers into a buffer of two
  end(e);
  send<void>(c, "commit");
  send<void>(c, "waitUntilCompleted");
  EXPECT_EQ(send<unsigned long>(c, "status"), 5ul);
  EXPECT_NE(backends::metal::what(r, send(c, "error")).find("behind the end"), std::string::npos);
  expect_fault("wrote behind the end of a buffer of 8 bytes");
}

TEST_F(FakeMetalTest, FastMathsAreAFault) {
  const Ref text = backends::metal::make_string(r, kText);
  const Ref options = owned(r.send(r.send(r.find_class("MTLCompileOptions"), "alloc"), "init"));
  Id error = nullptr;
  owned(send(device, "newLibraryWithSource:options:error:", text.get(), options.get(), &error));
  expect_fault("compiled with fast maths");
}

}  // namespace
}  // namespace lc::test
