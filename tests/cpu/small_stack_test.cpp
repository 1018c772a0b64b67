// A thread with a small stack compiles a graph of any size, with every compiler of kernels, as
// docs/guide/threads-and-memory.md promises.
#include <pthread.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

void* compile_much(void* said) {
  *static_cast<std::string*>(said) = error_of([] {
    Graph g;
    const Tensor x = g.input("x", {8, 8}), q = g.input("q", {2, 16, 8});
    Tensor chain = x, layers = x;
    for (int k = 0; k < 2000; ++k) chain = sin(chain * 1.01) + pad(x, 0, 1, 0).slice(0, 0, 8);
    for (int k = 0; k < 100; ++k) layers = softmax(matmul(layers, x) + 1, 1);
    g.output("chain", chain);
    g.output("slopes", gradients(sum(layers), {x})[0]);
    g.output("attention", matmul(softmax(matmul(q, q.transpose(1, 2)), 2), q));
    g.output("sorted", cumprod(sort(x, 0).values, 1));
    for (const char* compiler : {"none", "llvm", ""}) {
      if (*compiler == 'l' && backends::cpu::find_llvm().path.empty()) continue;
      const Program p = compile(g, generic() | cpu({.threads = 1, .jit = {.compiler = compiler}}));
      Context c(p);
      c.set("x", std::vector<float>(64)).set("q", std::vector<float>(256)).run();
    }
  });
  return nullptr;
}

}  // namespace

TEST(Program, CompilesInAThreadOfLittleStack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  GTEST_SKIP() << "the frames of such a build are several times as large";
#endif
  std::string said;
  pthread_attr_t small;
  pthread_attr_init(&small);
  ASSERT_EQ(pthread_attr_setstacksize(&small, 256 << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &small, compile_much, &said), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
  EXPECT_EQ(said, "no error");
}
