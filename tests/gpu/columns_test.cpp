// Sums and maxima of columns, which threads side by side share: of any number of rows and columns, on every device.
#include <cmath>

#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

class Columns : public test::OnGpu {};
LIGHTCONE_ON_GPUS(Columns);

}  // namespace

// One sum over rows and columns of what another sum of each row scales: threads share the rows.
TEST_P(Columns, OfRowsThatAreNormed) {
  for (const int rows : {2, 3, 70}) {
    Graph g;
    const Tensor x = g.input("x", {rows, 16}), by = g.input("by", {1, 1});
    g.output("y", sum(x * (1.0 / sqrt(sum(x * x, 1, true) + 1.0)) * by));
    const VerifyReport r = verify(g, generic() | compiler());
    EXPECT_TRUE(r.ok()) << rows << ": " << r.str();
  }
}

TEST_P(Columns, AreSummed) {
  Graph g;
  std::map<std::string, std::vector<float>> inputs;
  int number = 0;
  for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{9, 33}, {257, 1}, {1000, 70}, {515, 300}})
    for (const DType t : {DType::F32, DType::BF16}) {
      const std::string name = str_cat("x", number++);
      const Tensor x = g.input(name, {rows, columns}, t);
      g.output(name + ".sum", sum(to(x, DType::F32), 0)), g.output(name + ".max", amax(x, 0));
      for (int k = 0; k < rows * columns; ++k) inputs[name].push_back(static_cast<float>(k * 7919 % 251) / 64 - 2);
    }
  const Program here = compile(g, generic() | cpu({.threads = 1})), there = compile(g, generic() | compiler());
  Context a(here), b(there);
  for (Context* c : {&a, &b}) {
    for (const auto& [name, values] : inputs) c->set(name, values);
    c->run();
  }
  for (const std::string& name : here.outputs()) {
    const auto want = a.get(name), got = b.get(name);
    ASSERT_EQ(want.size(), got.size());
    for (std::size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got[k], want[k], 1e-5 * (4 + std::abs(want[k]))) << name << " " << k;
  }
}
