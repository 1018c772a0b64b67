// Sums and maxima of columns, which threads side by side share: of any number of rows and columns, on every device. And
// rows that are kept in the memory of a group: of any length.
#include <cmath>
#include <regex>

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

namespace {

// The bytes of shared memory that a text declares.
std::size_t declared(const std::string& text) {
  static const std::map<std::string, std::size_t> sizes = {{"float", 4}, {"double", 8}, {"long", 8}, {"int", 4}};
  static const std::regex declaration("LC_SHARED\\((\\w+), \\w+, (\\d+)\\)");
  std::size_t all = 0;
  for (std::sregex_iterator i(text.begin(), text.end(), declaration), end; i != end; ++i)
    all += sizes.at((*i)[1]) * std::stoul((*i)[2]);
  return all;
}

Graph softmax_of(std::int64_t rows, std::int64_t columns, DType t) {
  Graph g;
  g.output("y", softmax(g.input("x", {rows, columns}, t), 1));
  return g;
}

}  // namespace

// CUDA compiles no text that declares more than 48 KB, though a group may have 227 KB at a launch. An A100 refused
// softmax of 1,537 columns.
TEST_P(Columns, KeptRowsAreDeclaredWithinTheLimit) {
  std::size_t largest = 0;
  const auto see = [&](DType t, std::initializer_list<std::int64_t> lengths) {
    for (const std::int64_t n : lengths) {
      const Graph made = transform(softmax_of(600, n, t), generic() | compiler()).graph;
      for (NodeId id = 0; id < made.size(); ++id)
        if (made[id].kernel) largest = std::max(largest, declared(made[id].kernel->source()));
    }
  };
  see(DType::F32, {1408, 1409, 1537, 1792, 2048, 11264, 11265, 12273, 20864});
  see(DType::BF16, {1600, 12288});
  if (device->limits().f64) see(DType::F64, {769, 1024, 6137});
  EXPECT_LE(largest, std::min<std::size_t>(48 << 10, device->limits().shared));
  EXPECT_GE(largest, std::size_t{8} << 10) << "rows are kept at all";
}

TEST_P(Columns, LongRowsAreRight) {
  for (const std::int64_t n : {1600, 12288, 20001}) {
    const VerifyReport r = verify(softmax_of(3, n, DType::F32), generic() | compiler(), {.trials = 1, .shrink = false});
    EXPECT_TRUE(r.ok()) << n << ": " << r.str();
  }
}
