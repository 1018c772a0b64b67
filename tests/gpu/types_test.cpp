// half() and int8() on every device: the same graphs in fewer bits, held against the CPU's answers and the f64 reference.
#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/lowering/types/half_precision.h"
#include "lightcone/lowering/types/int8.h"
#include "lightcone/passes/passes.h"
#include "narrow.h"
#include "nets.h"

using namespace lc;
using namespace lc::test;

namespace {

class NarrowTypes : public OnGpu {};
LIGHTCONE_ON_GPUS(NarrowTypes);

struct Type {
  const char* name;
  Compiler compiler;
  double error, from_cpu;  // of the answers, to f64 and to the CPU's
};
std::vector<Type> types() {
  return {{"f16", half(), 1.5e-3, 1.5e-3},
          {"bf16", half(DType::BF16), 1.2e-2, 1.2e-2},  // the CPU rounds fewer activations of few rows
          {"int8", int8(), 2.5e-2, 1e-5},
          {"int8 in groups", int8({.group = 32}), 2.5e-2, 1e-5}};
}
Graph small_mlp() { return mlp(4, 128, 64); }
Graph small_block() { return gpt(9, 32, 2); }

}  // namespace

TEST_P(NarrowTypes, AnswerAsTheCpuDoes) {
  for (const Graph& g : {small_mlp(), small_block()})
    for (const Type& t : types()) {
      const Inputs values = trained_values(g, 1);
      Program here = compile(g, generic() | t.compiler | cpu({.threads = 1})),
              there = compile(g, generic() | t.compiler | compiler());
      EXPECT_EQ(there.interpreted(), 0u) << t.name;
      give(here, values), give(there, values);
      const auto want = answer(here, values), got = answer(there, values);
      EXPECT_LT(distance(want, got), t.from_cpu) << t.name;
      EXPECT_LT(distance(interpret(g, values).outputs.at("y").f, got), t.error) << t.name;
    }
}

// Weights lie in the device's memory as the type has them, and not as they were given.
TEST_P(NarrowTypes, KeepNarrowWeightsAlone) {
  const Graph g = small_mlp();
  const std::size_t weights = 128 * 64 + 64 * 64 + 64 * 10, others = 64 + 64 + 10;
  const std::pair<Compiler, std::size_t> cases[] = {{half(), 2 * (weights + others)},
                                                    {half(DType::BF16), 2 * (weights + others)},
                                                    {int8(), weights + 4 * (64 + 64 + 10)}};
  for (const auto& [c, bytes] : cases) {
    const Program p = compile(g, generic() | c | compiler());
    EXPECT_LE(p.plan().prepared_bytes, bytes + 64 * 12);  // each at a multiple of 64
    for (const char* name : {"fc1.weight", "fc2.weight", "fc3.weight"}) EXPECT_FALSE(p.resident(name)) << name;
  }
}

// Activations lie in memory as halves between the layers.
TEST_P(NarrowTypes, KeepActivationsAsHalves) {
  const Program wide = compile(mlp(64, 128, 128), generic() | compiler()),
                narrow = compile(mlp(64, 128, 128), generic() | half() | compiler());
  std::size_t halves = 0;
  const Graph& g = narrow.graph();
  for (NodeId id = 0; id < g.size(); ++id) halves += g[id].op == Op::Kernel && g[id].dtype == DType::F16 && g[id].shape == Shape{64, 128};
  EXPECT_GE(halves, 2u);
  EXPECT_LT(narrow.plan().arena_bytes, wide.plan().arena_bytes);
}
