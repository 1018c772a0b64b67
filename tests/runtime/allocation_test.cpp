// When the n-th allocation fails, building, compiling, loading and running give std::bad_alloc or an Error, leak
// nothing, and work when repeated.
//
// Allocations are those of `new`, blocks and mapped files from the system, and threads. The suite takes a sample;
// LIGHTCONE_EVERY_ALLOCATION=1 takes all of them.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <new>
#include <random>
#include <thread>

#include "data.h"
#include "gguf_writer.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/nn/session.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

std::atomic<long> seen{0}, failing{-1}, living{0};

bool fails() { return ++seen == failing; }

void* take(std::size_t bytes, std::size_t alignment) {
  if (fails()) throw std::bad_alloc();
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(bytes ? bytes : 1)
                : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!p) throw std::bad_alloc();
  ++living;
  return p;
}
void give(void* p) {
  if (!p) return;
  --living;
  std::free(p);
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t n) { return take(n, 0); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  try {
    return take(n, 0);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t n, std::align_val_t a) { return take(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }

// The linker redirects the library's calls here (--wrap, tests/CMakeLists.txt).
extern "C" {
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
void* __wrap_mmap(void* at, std::size_t n, int access, int flags, int file, off_t offset) {
  if (!fails()) return __real_mmap(at, n, access, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
int __real_mprotect(void*, std::size_t, int);
int __wrap_mprotect(void* at, std::size_t n, int access) {
  if (!fails()) return __real_mprotect(at, n, access);
  errno = ENOMEM;
  return -1;
}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers interpose it themselves
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* arg) noexcept {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return fails() ? EAGAIN : real(t, a, f, arg);
}
#endif
}

namespace {

bool every_one() { return std::getenv("LIGHTCONE_EVERY_ALLOCATION") != nullptr; }

using Work = std::function<std::vector<float>()>;

// The outcome of the work with its n-th allocation failing, and the results of the same work afterwards.
struct Outcome {
  bool threw = false;
  std::string wrong;
  std::vector<float> afterwards;
};
Outcome disturbed(const Work& work, const std::vector<float>& want, long n) {
  Outcome o;
  seen = 0, failing = n;
  try {
    const std::vector<float> got = work();
    failing = -1;
    if (got != want) o.wrong = "wrong numbers";
  } catch (const std::bad_alloc&) {
    failing = -1, o.threw = true;
  } catch (const Error&) {
    failing = -1, o.threw = true;
  } catch (const std::exception& e) {
    failing = -1, o.wrong = std::string("another exception: ") + e.what();
  }
  try {
    o.afterwards = work();
  } catch (const std::exception& e) {
    o.wrong = std::string("afterwards: ") + e.what();
  }
  return o;
}

// Runs the work with each of a sample of its allocations failing, and then again undisturbed. Each run is in a new
// thread, so that thread-local caches are empty.
void with_failing_allocations(const Work& work, long sample) {
  const std::vector<float> want = work();
  long all = 0;
  const auto in_a_thread = [&] {
    std::thread([&] {
      const long before = seen;
      work();
      all = seen - before;
    }).join();
  };
  in_a_thread();
  const long start = living;
  in_a_thread();
  ASSERT_EQ(living, start) << "the work itself leaves something behind";
  std::mt19937 random(20261122);
  std::vector<long> chosen;
  for (long n = 1; n <= all; ++n)
    if (every_one() || n <= 20 || static_cast<long>(random() % static_cast<unsigned long>(all)) < sample)
      chosen.push_back(n);
  const long at_rest = living;
  long threw = 0;
  for (const long n : chosen) {
    {
      Outcome o;
      std::thread([&] { o = disturbed(work, want, n); }).join();
      threw += o.threw;
      ASSERT_EQ(o.wrong, "") << "allocation " << n << " of " << all;
      ASSERT_EQ(o.afterwards, want) << "after allocation " << n << " of " << all << " failed";
    }
    ASSERT_EQ(living, at_rest) << "after allocation " << n << " of " << all << " failed";
  }
  std::printf("%ld of %ld allocations failed in turn, %ld of them with an exception\n",
              static_cast<long>(chosen.size()), all, threw);
  EXPECT_GT(threw, static_cast<long>(chosen.size()) / 2);
}

// RAII: selects a compiler for one test.
struct WithCompiler {
  explicit WithCompiler(const char* cc) { ::setenv("LIGHTCONE_CC", cc, 1); }
  ~WithCompiler() { ::unsetenv("LIGHTCONE_CC"); }
};

std::vector<float> ramp(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = static_cast<float>(k % 11) - 5;
  return v;
}

// A product, a convolution, a softmax, a state and a symbolic extent.
std::vector<float> small_net(const Compiler& compiler) {
  Graph g;
  const Dim n = Dim::symbol("rows", 1, 8);
  const Tensor x = g.input("x", {n, 12});
  const Tensor w = g.parameter("w", {12, 16}, DType::F32);
  const Tensor image = g.input("image", {1, 2, 6, 6}), filter = g.input("filter", {3, 2, 3, 3});
  const Tensor total = g.input("total", {16});
  const Tensor y = softmax(gelu(matmul(x, w)), 1).retrieve("y");
  g.assign(total, prim::add(total, sum(y, {0})));
  g.output("z", conv(image, filter));
  Program p = compile(g, compiler);
  const std::vector<float> weights = ramp(12 * 16);
  p.load("w", weights.data(), weights.size() * 4);
  Context c(p);
  std::vector<float> all;
  for (const std::int64_t rows : {3, 5}) {
    c.bind("rows", rows).set("x", ramp(static_cast<std::size_t>(rows) * 12));
    c.set("image", ramp(72)).set("filter", ramp(54)).run();
    for (const char* name : {"y", "z", "total"})
      for (const float v : c.get(name)) all.push_back(v);
  }
  return all;
}

}  // namespace

TEST(Allocation, OfAGraphAndTheInterpreter) {
  with_failing_allocations([] { return small_net(generic()); }, 300);
}

TEST(Allocation, OfKernelsThatAreInterpreted) {
  const WithCompiler none("none");
  with_failing_allocations([] { return small_net(generic() | cpu({.threads = 1})); }, 300);
}

// After the first run the kernels are in the cache.
TEST(Allocation, OfKernelsThatAreCompiled) {
  with_failing_allocations([] { return small_net(generic() | cpu({.threads = 1})); }, 40);
}

TEST(Allocation, OfTwoThreads) {
  const WithCompiler none("none");
  with_failing_allocations([] { return small_net(generic() | cpu({.threads = 2})); }, 150);
}

// Sizes beyond the initially committed memory: more of the reserved range is committed when sizes are bound.
TEST(Allocation, OfSizesThatGrow) {
  with_failing_allocations(
      [] {
        Graph g;
        const Dim n = Dim::symbol("n", 1, 1 << 26);
        const Tensor state = g.input("state", {n});
        g.assign(state, prim::add(state, prim::contiguous(g.index({n}, Dim::index(0, n), DType::F32))));
        g.output("sum", sum(prim::exp2(prim::mul(state, full_like(state, 0))), {0}));
        Context c(compile(g, generic()));
        std::vector<float> all;
        for (const std::int64_t size : {2, 3000, 4}) {
          all.push_back(c.bind("n", size).run().scalar("sum"));
          all.push_back(c.get("state")[1]);
        }
        return all;
      },
      200);
}

// A message is either complete or throws bad_alloc.
TEST(Allocation, OfASentence) {
  const std::string word(300, 'x');
  const std::string want = str_cat("a ", word, 12345, " and ", 0.5, word);
  long threw = 0;
  for (long n = 1; n < 100; ++n) {
    seen = 0, failing = n;
    try {
      const std::string got = str_cat("a ", word, 12345, " and ", 0.5, word);
      failing = -1;
      ASSERT_EQ(got, want) << n;
    } catch (const std::bad_alloc&) {
      failing = -1, ++threw;
    }
  }
  EXPECT_GT(threw, 1);
}

TEST(Allocation, OfASession) {
  with_failing_allocations(
      [] {
        Session cx;
        const auto a = cx.tensor<3, 1>().set({{1}, {2}, {3}});
        const auto b = cx.tensor<1, 4>().set({{1, 2, 3, 4}});
        const auto c = a.matmul(b).retrieve();
        cx.compile(generic());
        return cx.execute().data(c);
      },
      200);
}

TEST(Allocation, OfALlama) {
  const WithCompiler none("none");
  const TempDir dir;
  spit(dir / "x.gguf", tiny_llama_with_tokens().bytes());
  with_failing_allocations(
      [&] {
        const Llama m = Llama::load(dir / "x.gguf", {.threads = 1});
        LlamaSession s(m);
        s.feed(std::vector<int>{1, 4, 5});
        const auto l = s.feed(3);
        return std::vector<float>(l.begin(), l.end());
      },
      120);
}

// A graph whose growth failed is unchanged and can still be used.
TEST(Allocation, AGraphThatCouldNotGrowIsAsItWas) {
  for (long n = 1;; ++n) {
    Graph g;
    const Tensor x = g.input("x", {4});
    Tensor y = x;
    for (int k = 0; k < 40; ++k) y = prim::add(y, x);
    const std::size_t size = g.size();
    bool threw = false;
    seen = 0, failing = n;
    try {
      const Tensor b = g.input("b", {4});
      g.output("y", prim::exp2(prim::mul(y, b)));
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    failing = -1;
    if (!threw) {
      EXPECT_GT(n, 10);
      break;
    }
    ASSERT_LE(g.size(), size + 3);
    Tensor b;
    bool has_b = false;
    for (NodeId id = 0; id < g.size(); ++id)
      if (g[id].name == "b") b = Tensor(g, {id, View(g[id].shape)}), has_b = true;
    if (!has_b) b = g.input("b", {4});
    g.output("again", prim::exp2(prim::mul(y, b)));
    Context c(compile(g));
    c.set("x", std::vector<float>{1, 2, 3, 4}).set("b", std::vector<float>{0, 0.25f, 0, 0}).run();
    ASSERT_EQ(c.get("again"), (std::vector<float>{1, std::exp2(20.5f), 1, 1})) << n;
  }
}
