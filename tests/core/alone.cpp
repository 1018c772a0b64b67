// A model can be written and computed by a program that links base, core, random, reference, composites and ops alone.
#include <cmath>
#include <cstdio>

#include "lightcone/ops/ops.h"
#include "lightcone/reference/interpreter.h"

int main() {
  using namespace lc;
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("batch", 1, 8), 3}), w = g.input("w", {4, 3}), v = g.input("v", {2, 4});
  g.output("y", softmax(linear(relu(linear(x, w)), v), 1));
  const auto filled = [](std::vector<std::int64_t> shape, double first) {
    Value value = make_value(DType::F32, std::move(shape));
    for (std::size_t k = 0; k < value.size(); ++k) value.f[k] = first + 0.25 * static_cast<double>(k % 5);
    return value;
  };
  const Results r =
      interpret(g, {{"x", filled({2, 3}, -0.5)}, {"w", filled({4, 3}, -1)}, {"v", filled({2, 4}, 0)}}, {{"batch", 2}});
  const Value& y = r.outputs.at("y");
  for (std::size_t row = 0; row < 2; ++row)
    if (!(std::abs(y.f[2 * row] + y.f[2 * row + 1] - 1) < 1e-12) || !(y.f[2 * row] > 0)) return 1;
  std::printf("%s%.6f %.6f\n", g.str().c_str(), y.f[0], y.f[2]);
  return 0;
}
