// The long run behind docs/accuracy.md: compares every f32 function of one number, compiled for the CPU, with double
// precision on all 2^32 numbers, and checks the worst case of each with MPFR. It takes half a minute per function and
// core.
//
//   accuracy [--every N] [FUNCTION...]     by the C compiler; with LIGHTCONE_CC=llvm by LLVM
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "accuracy.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

constexpr std::size_t kChunk = 1 << 16;  // fits the caches

struct Found {
  double ulps = 0, off = 0;
  float at = 0, got = 0;
};

Found measure(const accuracy::Function& f, std::uint64_t every) {
  Graph g;
  g.output("y", f.build(g.input("x", {static_cast<int>(kChunk)}, DType::F32)));
  Context c(compile(g, generic() | cpu({.threads = 1})));
  std::vector<float> x(kChunk), y(kChunk);
  std::vector<double> want(kChunk);
  Found found;
  std::uint64_t tried = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += kChunk * every, tried += kChunk) {
    for (std::size_t k = 0; k < kChunk; ++k) {
      const auto bits = static_cast<std::uint32_t>(first + k * every + k % every);
      x[k] = (bits & 0x7fffffff) == 0x7f800000 ? 0 : std::bit_cast<float>(bits);  // ops_test tests infinities
    }
    c.set_bytes("x", x.data(), x.size() * sizeof(float)).run();
    std::memcpy(y.data(), c.bytes("y").data(), y.size() * sizeof(float));
    f.exact(x.data(), want.data(), static_cast<long>(kChunk));
    const accuracy::Worst w = accuracy::worst(f, x, y, want);
    found.off += static_cast<double>(w.off);
    if (w.ulps > found.ulps) found = {w.ulps, found.off, x[w.at], y[w.at]};
  }
  found.off /= static_cast<double>(tried);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> asked(argv + 1, argv + argc);
  std::uint64_t every = 1;
  if (asked.size() > 1 && asked[0] == "--every") {
    every = std::stoull(asked[1]);
    asked.erase(asked.begin(), asked.begin() + 2);
  }
  std::printf("| function | at most | at | not the nearest |\n|---|---|---|---|\n");
  bool kept = true;
  for (const accuracy::Function& f : accuracy::functions()) {
    if (!asked.empty() && std::find(asked.begin(), asked.end(), f.name) == asked.end()) continue;
    Found w = measure(f, every);
#if LIGHTCONE_MPFR
    w.ulps = accuracy::ulps(f, w.at, w.got, f.digits(w.at).number());
#endif
    kept = kept && w.ulps <= f.bound;
    std::printf("| %s | %.3f%s | %.9g | %.2g %% |\n", f.name, w.ulps, w.ulps <= f.bound ? "" : " above its bound", w.at,
                100 * w.off);
    std::fflush(stdout);
  }
  return kept ? EXIT_SUCCESS : EXIT_FAILURE;
}
