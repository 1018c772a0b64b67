// Graphs compiled with half() and int8() agree with the CPU and with the f64 reference on every GPU device.
#include <bit>
#include <cmath>

#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/core/dtype.h"
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
  double error, from_cpu;  // errors of the results relative to f64 and to the CPU
};
std::vector<Type> types() {
  return {{"f16", half(), 1.5e-3, 1.5e-3},
          {"bf16", half(DType::BF16), 1.2e-2, 1.2e-2},  // for few rows the CPU rounds fewer activations
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

// Weights are stored on the device in the narrow type only, not as they were given.
TEST_P(NarrowTypes, KeepNarrowWeightsAlone) {
  const Graph g = small_mlp();
  const std::size_t weights = 128 * 64 + 64 * 64 + 64 * 10, others = 64 + 64 + 10;
  const std::pair<Compiler, std::size_t> cases[] = {{half(), 2 * (weights + others)},
                                                    {half(DType::BF16), 2 * (weights + others)},
                                                    {int8(), weights + 4 * (64 + 64 + 10)}};
  for (const auto& [c, bytes] : cases) {
    const Program p = compile(g, generic() | c | compiler());
    EXPECT_LE(p.plan().prepared_bytes, bytes + 64 * 12);  // each is aligned to 64 bytes
    for (const char* name : {"fc1.weight", "fc2.weight", "fc3.weight"}) EXPECT_FALSE(p.resident(name)) << name;
  }
}

// Activations between the layers are stored as halves.
TEST_P(NarrowTypes, KeepActivationsAsHalves) {
  const Program wide = compile(mlp(64, 128, 128), generic() | compiler()),
                narrow = compile(mlp(64, 128, 128), generic() | half() | compiler());
  std::size_t halves = 0;
  const Graph& g = narrow.graph();
  for (NodeId id = 0; id < g.size(); ++id)
    halves += g[id].op == Op::Kernel && g[id].dtype == DType::F16 && g[id].shape == Shape{64, 128};
  EXPECT_GE(halves, 2u);
  EXPECT_LT(narrow.plan().arena_bytes, wide.plan().arena_bytes);
}

// Converts all 16-bit numbers to f32, and f32 numbers between them to 16 bits. Bits must equal the CPU's, except for
// NaN.
TEST_P(NarrowTypes, WidenAndRoundEveryNumber) {
  constexpr std::int64_t kAll = 65536;
  for (const DType t : {DType::F16, DType::BF16}) {
    Graph g;
    g.output("wide", to(g.input("x", {kAll}, t), DType::F32));
    g.output("narrow", to(g.input("y", {3 * kAll}), t));
    Program here = compile(g, generic() | cpu({.threads = 1})), there = compile(g, generic() | compiler());
    Context want(here), got(there);
    std::vector<std::uint16_t> x(kAll);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<std::uint16_t>(k);
    std::vector<float> y;
    for (const std::uint16_t bits : x) {  // each number, half a unit more, and slightly more than that
      const float f = static_cast<float>(load_f64(reinterpret_cast<const std::byte*>(&bits), t, 0));
      const std::uint16_t next = static_cast<std::uint16_t>(bits + 1);
      const float half = f + (static_cast<float>(load_f64(reinterpret_cast<const std::byte*>(&next), t, 0)) - f) / 2;
      y.insert(y.end(), {f, half, std::nextafter(half, 1e30F)});
    }
    for (Context* c : {&want, &got}) c->set_bytes("x", x.data(), 2 * x.size()).set("y", y).run();
    const auto wide = want.get("wide"), wide_there = got.get("wide");
    for (std::size_t k = 0; k < x.size(); ++k)
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(wide[k]) == std::bit_cast<std::uint32_t>(wide_there[k]) ||
                  (std::isnan(wide[k]) && std::isnan(wide_there[k])))
          << info(t).name << " " << k << ": " << wide_there[k] << " for " << wide[k];
    const auto narrow = want.get("narrow"), narrow_there = got.get("narrow");
    for (std::size_t k = 0; k < y.size(); ++k)
      ASSERT_TRUE((narrow[k] == narrow_there[k] && std::signbit(narrow[k]) == std::signbit(narrow_there[k])) ||
                  (std::isnan(narrow[k]) && std::isnan(narrow_there[k])))
          << info(t).name << " of " << y[k] << ": " << narrow_there[k] << " for " << narrow[k];
  }
}
