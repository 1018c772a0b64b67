// Runs a module on arrays and compares its results with expected ones:
//
//   stablehlo_run NAME.mlir NAME.in.npz NAME.out.npz [parameters [--time | --profile]]
//
// The first `parameters` arguments are weights, which are loaded once. Open extents ('?') get the sizes of the arrays.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lightcone/io/data/readers.h"
#include "lightcone/lightcone.h"
#include "lightcone/stablehlo/read.h"

using namespace lc;

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4)
    return std::fprintf(stderr, "stablehlo_run MODULE IN.npz OUT.npz [parameters [--time | --profile]]\n"), 2;
  std::ifstream f(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(f), {}};
  double start = seconds();
  StableHloOptions options;
  for (int k = 0; argc > 4 && k < std::atoi(argv[4]); ++k) options.parameters.push_back(k);
  const Arrays in = read_npz(argv[2]), out = read_npz(argv[3]);
  for (int k = 0; in.contains("arg" + std::to_string(k)); ++k)
    options.shapes[k] = in.at("arg" + std::to_string(k)).shape;
  const StableHloProgram s = read_stablehlo(text, options);
  std::printf("read in %.3f s, %zu inputs, %zu nodes\n", seconds() - start, s.inputs.size(), s.graph.size());
  start = seconds();
  Program p = compile(s.graph, generic() | cpu());
  s.load_constants(p);
  std::printf("compiled in %.3f s\n", seconds() - start);
  for (const PassLog& pass : p.log())
    for (const auto& [what, times] : pass.fired) std::printf("%s %s: %d\n", pass.pass.c_str(), what.c_str(), times);
  const std::size_t parameters = options.parameters.size();
  const auto view = [](const Array& a) { return ArrayView{a.dtype, a.shape, a.bytes}; };
  for (std::size_t k = 0; k < parameters; ++k) p.load(s.inputs[k], view(in.at("arg" + std::to_string(k))));
  Context c(p);
  for (std::size_t k = parameters; k < s.inputs.size(); ++k) c.set(s.inputs[k], view(in.at("arg" + std::to_string(k))));
  c.run();
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < s.outputs.size(); ++k) {
    const auto& wanted = out.at("out" + std::to_string(k));
    const Value got = c.value(s.outputs[k]), expected = read_value(wanted.bytes.data(), wanted.dtype, wanted.shape);
    double most = 0, scale = 0;
    for (std::size_t n = 0; n < got.size(); ++n) {
      const double x = got.at(n), y = expected.at(n);
      if (std::isnan(x) != std::isnan(y) || got.size() != expected.size()) most = INFINITY;
      else if (!std::isnan(x)) most = std::max(most, std::abs(x - y)), scale = std::max(scale, std::abs(y));
    }
    const bool same = is_float(got.dtype) ? most <= 2e-5 * std::max(scale, 1e-3) : most == 0;
    if (!same || s.outputs.size() < 6)
      std::printf("%s: off by at most %.3g where the largest is %.3g%s\n", s.outputs[k].c_str(), most, scale,
                  same ? "" : "  WRONG");
    wrong += !same;
  }
  std::printf("%zu of %zu results are right\n", s.outputs.size() - wrong, s.outputs.size());
  if (argc > 5) {
    std::vector<double> times;
    for (int k = 0; k < 15; ++k) start = seconds(), c.run(), times.push_back(seconds() - start);
    std::ranges::sort(times);
    if (std::string(argv[5]) == "--profile") {
      c.profile(true);
      for (int k = 0; k < 5; ++k) c.run();
      std::printf("%s\n", c.profile().table({}).c_str());
    }
    std::printf("median of 15 runs %.3f ms\n", times[7] * 1e3);
  }
  return wrong > 0;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
