// Memory follows the sizes that are bound, not their upper bounds, and large blocks begin at huge pages. Under a memory
// limit results are the same or the Error has figures.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/composites/composites.h"
#include "lightcone/device/memory.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

constexpr double kMB = 1e6;

std::vector<float> ramp(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = static_cast<float>(k % 17) * 0.125f - 1;
  return v;
}

// Applies a convolution and a softmax over channels to up to 4096 images of 3 x 224 x 224.
constexpr std::int64_t kMostPictures = 4096;
Program pictures() {
  Graph g;
  const Dim batch = Dim::symbol("batch", 1, kMostPictures);
  const Tensor x = g.input("x", {batch, 3, 224, 224}), w = g.input("w", {8, 3, 3, 3});
  g.output("y", sum(softmax(conv(x, w), 1) * 2.0, {2, 3}));
  return compile(g, generic() | cpu({.threads = 2}));
}
std::vector<float> run(Context& c, std::int64_t batch) {
  c.bind("batch", batch).set("x", ramp(static_cast<std::size_t>(batch) * 3 * 224 * 224)).set("w", ramp(8 * 27)).run();
  return c.get("y");
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers need unlimited addresses
// RAII: limits the growth of this resource to `bytes`.
class Limit {
 public:
  Limit(__rlimit_resource what, std::size_t bytes) : what_(what) {
    std::size_t pages = 0, skip = 0, data = 0;
    std::ifstream("/proc/self/statm") >> pages >> skip >> skip >> skip >> skip >> data;
    getrlimit(what_, &old_);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const rlimit tight{(what == RLIMIT_AS ? pages : data) * page + bytes, old_.rlim_max};
    setrlimit(what_, &tight);
  }
  ~Limit() { setrlimit(what_, &old_); }

 private:
  __rlimit_resource what_;
  rlimit old_{};
};
#endif

}  // namespace

TEST(Memory, APlanForTheBoundsAndOneForWhatIsBound) {
  const Program p = pictures();
  const std::size_t most = p.plan().arena_bytes, one = p.plan({{"batch", 1}}).arena_bytes;
  EXPECT_GT(static_cast<double>(most), 7000 * kMB);
  EXPECT_LT(static_cast<double>(one), 15 * kMB);
  EXPECT_EQ(p.plan({{"batch", kMostPictures}}).arena_bytes, most);
  EXPECT_EQ(p.plan({}).arena_bytes, most);
  EXPECT_EQ(p.plan({{"batch", 1}}).input_bytes, 4u * (3 * 224 * 224 + 8 * 27));
  EXPECT_THROW(p.plan({{"batch", 0}}), Error);
  EXPECT_THROW(p.plan({{"rows", 1}}), Error);

  Context c(p);
  EXPECT_LT(static_cast<double>(c.memory_bytes()), kMB);
  run(c, 1);
  EXPECT_EQ(c.plan().arena_bytes, one);
  // the plan, in pages of 2 MiB per value, and the inputs
  EXPECT_LT(static_cast<double>(c.memory_bytes()), static_cast<double>(one) + 20 * kMB);
  const std::size_t for_one = c.memory_bytes();
  run(c, 8);
  EXPECT_GT(c.memory_bytes(), for_one);
  EXPECT_GE(c.memory_bytes(), c.plan().arena_bytes);
  EXPECT_LT(static_cast<double>(c.memory_bytes()), static_cast<double>(c.plan().arena_bytes) + 40 * kMB);
}

// Values have the same addresses for small and for large sizes, and results do not depend on previous runs.
TEST(Memory, SizesGrowAndShrink) {
  const Program p = pictures();
  Context c(p);
  for (const std::int64_t batch : {1, 3, 2, 5, 1}) {
    Context fresh(p);
    EXPECT_EQ(run(c, batch), run(fresh, batch)) << batch;
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// If addresses for the largest sizes cannot be reserved, values are placed for the current sizes.
TEST(Memory, UnderALimitOnAddresses) {
  const Program p = pictures();
  Context free(p);
  std::map<std::int64_t, std::vector<float>> want;
  for (const std::int64_t batch : {1, 2, 3, 5}) want[batch] = run(free, batch);
  const Limit tight(RLIMIT_AS, 250u << 20);
  Context c(p);
  for (const std::int64_t batch : {1, 3, 2, 5, 1, 5}) EXPECT_EQ(run(c, batch), want[batch]) << batch;
  EXPECT_LT(static_cast<double>(c.memory_bytes()), 80 * kMB);
  const std::string refused = message([&] { run(c, 200); });
  EXPECT_TRUE(says(refused, "'batch'")) << refused;
  EXPECT_EQ(run(c, 2), want[2]);
}

// The error names the symbol that matters and both figures.
TEST(Memory, TooLargeNamesTheSymbolAndBothFigures) {
  Graph g;
  const Dim batch = Dim::symbol("batch", 1, 1 << 20), width = Dim::symbol("width", 1, 64);
  const Tensor y = g.index({batch, 1 << 10, width}, Dim::index(0, batch), DType::F32);
  g.output("y", sum(exp(prim::contiguous(y)), {1}));
  const Program p = compile(g, generic());
  for (const auto kind : {RLIMIT_AS, RLIMIT_DATA}) {
    Context c(p);
    c.bind("width", 2).bind("batch", 4).run();
    const std::vector<float> want = c.get("y");
    {
      const Limit tight(kind, 200u << 20);
      Context small(p);
      EXPECT_EQ(small.bind("width", 2).bind("batch", 4).run().get("y"), want);
      const std::string said = message([&] { small.bind("batch", 1 << 16).run(); });
      EXPECT_TRUE(says(said, "'batch'")) << said;
      EXPECT_TRUE(says(said, str_cat(p.plan().arena_bytes))) << said;
      EXPECT_TRUE(says(said, str_cat(small.plan().arena_bytes))) << said;
      EXPECT_EQ(small.bind("batch", 4).run().get("y"), want);
    }
  }
}

TEST(Memory, ProgramsWithoutNamesSayWhatTheyTake) {
  Graph g;
  g.output("y", sum(exp(prim::contiguous(g.index({1 << 30}, Dim::index(0, 1 << 30), DType::F32))), {0}));
  const Program p = compile(g, generic());
  const Limit tight(RLIMIT_AS, 200u << 20);
  const std::string said = message([&] { Context c(p); });
  EXPECT_TRUE(says(said, str_cat(p.plan().arena_bytes))) << said;
}
#endif

// A state of symbolic size keeps its content when it grows.
TEST(Memory, StatesGrow) {
  constexpr std::int64_t kMost = 1 << 28;
  Graph g;
  const Dim n = Dim::symbol("n", 1, kMost);
  const Tensor total = g.input("total", {n}), last = g.input("last", {n});
  g.assign(total, prim::add(total, full_like(total, 1)));
  g.assign(last, prim::add(total, full_like(total, 0.5)));
  g.output("before", total);
  g.output("sum", sum(total, {0}));
  for (const Compiler& compiler : {generic(), generic() | cpu({.threads = 1})}) {
    Context c(compile(g, compiler));
    EXPECT_LT(static_cast<double>(c.memory_bytes()), kMB);
    c.bind("n", 3).run().run();
    EXPECT_EQ(c.get("total"), (std::vector<float>{2, 2, 2}));
    EXPECT_EQ(c.get("before"), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(c.get("last"), (std::vector<float>{1.5, 1.5, 1.5}));
    c.bind("n", 5).run();
    EXPECT_EQ(c.get("total"), (std::vector<float>{3, 3, 3, 1, 1}));
    EXPECT_EQ(c.get("before"), (std::vector<float>{2, 2, 2, 0, 0}));
    EXPECT_EQ(c.scalar("sum"), 6);
    c.bind("n", 100000).run();
    EXPECT_EQ(c.scalar("sum"), 11);
    EXPECT_LT(static_cast<double>(c.memory_bytes()), 50 * kMB);
    c.clear_states();
    c.bind("n", 3).run();
    EXPECT_EQ(c.get("total"), (std::vector<float>{1, 1, 1}));
    // the caller's memory, and back to the context's own
    c.set("total", std::vector<float>{5, 6, 7}).run();
    EXPECT_EQ(c.get("total"), (std::vector<float>{6, 7, 8}));
  }
}

// Returns the resident bytes of the pages around `bytes`.
std::size_t resident(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const std::uintptr_t to = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  std::vector<unsigned char> there((to - from + page - 1) / page);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(from), to - from, there.data()), 0);
  return page * static_cast<std::size_t>(std::count_if(there.begin(), there.end(), [](auto c) { return c & 1; }));
}

// A cache takes memory only for what was written: with 8 heads and 4,096 positions, at most 64 KB after three
// positions, and almost nothing after it is cleared. (With huge pages the first position would take 8 MB.)
TEST(Memory, CachesGrowWithTheirText) {
  Graph g;
  const Dim past = Dim::symbol("past", 0, 4095);
  const Tensor cache = g.input("cache", {8, 4096, 64}), row = g.input("row", {8, 1, 64});
  const Tensor next = prim::slice_scatter(cache, row, 1, past);
  g.assign(cache, next);
  g.output("sum", sum(next.slice(1, 0, past + Dim(1)), {1}));
  for (const Compiler& compiler :
       {generic() | cpu({.threads = 1}), generic() | cpu({.threads = 1, .compiler = false})}) {
    Context c(compile(g, compiler));
    c.set("row", ramp(8 * 64));
    EXPECT_EQ(resident(c.bytes("cache")), 0u);
    for (std::int64_t at = 0; at < 3; ++at) c.bind("past", at).run();
    EXPECT_EQ(c.get("sum")[5], 3 * ramp(64)[5]);
    EXPECT_LE(resident(c.bytes("cache")), 64u << 10);
    for (std::int64_t at = 3; at < 20; ++at) c.bind("past", at).run();
    EXPECT_LE(resident(c.bytes("cache")), 128u << 10);
    c.clear_states();
    EXPECT_LE(resident(c.bytes("cache")), 8u << 10);
    EXPECT_EQ(c.bind("past", 0).run().get("sum")[5], ramp(64)[5]);
  }
}

// Ranges are committed in pieces, which are zeroed; the addresses around them are inaccessible.
TEST(Memory, ReservedRangesAreCommittedInPieces) {
  Reserved r(std::size_t{1} << 40);
  ASSERT_TRUE(r.reserved());
  EXPECT_EQ(r.committed(), 0u);
  ASSERT_TRUE(r.commit(5, 10));
  EXPECT_EQ(r.committed(), std::size_t{2} << 20);
  ASSERT_TRUE(r.commit((std::size_t{1} << 39) - 1, 2));
  EXPECT_EQ(r.committed(), std::size_t{6} << 20);
  ASSERT_TRUE(r.commit(0, std::size_t{8} << 20));
  EXPECT_EQ(r.committed(), std::size_t{12} << 20);
  ASSERT_TRUE(r.commit((std::size_t{1} << 40) - 1, 1));
  const std::size_t end = std::size_t{1} << 40;
  for (const std::size_t at : {std::size_t{5}, end / 2, (std::size_t{8} << 20) - 1, end - 1}) {
    EXPECT_EQ(r.data()[at], std::byte{0});
    r.data()[at] = std::byte{1};
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(r.data()) % (2 << 20), 0u);
  Reserved moved = std::move(r);
  EXPECT_EQ(moved.data()[5], std::byte{1});
  EXPECT_FALSE(r.reserved());
  Reserved small(100);
  EXPECT_EQ(small.committed(), 100u);
  small.data()[99] = std::byte{1};
  EXPECT_FALSE(Reserved(std::size_t{1} << 62).reserved());
}

// Large blocks are aligned to huge pages, have the requested size, and hold what is written.
TEST(Memory, LargeBlocksBeginAtHugePages) {
  constexpr std::size_t kHuge = 2 << 20;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5000}, kHuge - 1, kHuge, kHuge + 1, 3 * kHuge + 4097}) {
    std::vector<Memory> blocks(3);
    for (Memory& m : blocks) m = Memory(bytes);
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks[k].data()) % (bytes >= kHuge ? kHuge : 64), 0u) << bytes;
      EXPECT_EQ(blocks[k].size(), std::max<std::size_t>(bytes, 1));
      for (std::size_t i = 0; i < bytes; i += 511) EXPECT_EQ(blocks[k].data()[i], std::byte{0});
      std::memset(blocks[k].data(), static_cast<int>(k + 1), bytes);
    }
    for (std::size_t k = 0; k < blocks.size() && bytes; ++k) {
      EXPECT_EQ(blocks[k].data()[0], static_cast<std::byte>(k + 1));
      EXPECT_EQ(blocks[k].data()[bytes - 1], static_cast<std::byte>(k + 1));
    }
  }
}
