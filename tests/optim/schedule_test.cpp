// Sixty learning rates of every schedule are PyTorch's (tests/goldens/optim.txt), in the reference and compiled.
#include "lightcone/optim/schedule.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/optim/optim.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "on_device.h"
#include "optim_goldens.h"

using namespace lc;
using namespace lc::optim;

namespace {

const std::map<std::string, Schedule>& schedules() {
  static const std::map<std::string, Schedule> all{
      {"step_lr", step_lr(0.3, 7)},
      {"step_lr gamma", step_lr(0.3, 10, 0.5)},
      {"multi_step", multi_step(0.3, {41, 5, 20, 20}, 0.3)},
      {"exponential", exponential(0.3, 0.93)},
      {"linear", linear(0.3)},
      {"linear options", linear(0.3, 0.1, 0.7, 23)},
      {"polynomial", polynomial(0.3)},
      {"polynomial power", polynomial(0.3, 37, 2.5)},
      {"cosine_annealing", cosine_annealing(0.3, 50)},
      {"cosine_annealing min", cosine_annealing(0.3, 20, 0.05)},
      {"cosine_annealing_warm_restarts", cosine_annealing_warm_restarts(0.3, 11)},
      {"cosine_annealing_warm_restarts mult", cosine_annealing_warm_restarts(0.3, 4, 2, 0.01)},
      {"cosine_annealing_warm_restarts three", cosine_annealing_warm_restarts(0.3, 5, 3)},
      {"one_cycle", one_cycle(0.3, 60)},
      {"one_cycle linear",
       one_cycle(0.3, 60,
                 {.pct_start = 0.4, .anneal_strategy = Anneal::Linear, .div_factor = 10, .final_div_factor = 100})},
      {"one_cycle three", one_cycle(0.3, 60, {.three_phase = true})},
      {"one_cycle three linear",
       one_cycle(0.3, 61, {.pct_start = 0.25, .anneal_strategy = Anneal::Linear, .three_phase = true})},
      {"sequential", sequential({constant(0.3), exponential(0.3, 0.9), step_lr(0.3, 4, 0.5)}, {10, 30})},
      {"warm_up cosine", warm_up(cosine_annealing(0.3, 48), 12, 0.05)},
  };
  return all;
}

Value at(std::int64_t t) {
  Value v = make_value(DType::I64, {});
  v.i[0] = t;
  return v;
}
double rate(const Schedule& s, std::int64_t t) {
  Graph g;
  const Tensor lr = s(g.input("t", {}, DType::I64));
  EXPECT_EQ(lr.dtype(), DType::F64);
  EXPECT_EQ(lr.rank(), 0);
  g.output("lr", lr);
  return interpret(g, {{"t", at(t)}}).outputs.at("lr").f[0];
}

}  // namespace

TEST(Schedule, RatesAreThoseOfPyTorch) {
  std::size_t found = 0;
  for (const auto& [name, golden] : optim_goldens()) {
    if (!name.starts_with("schedule ")) continue;
    const Schedule& s = schedules().at(name.substr(9));
    ++found;
    for (std::size_t t = 0; t < golden.out.at(0).size(); ++t)
      EXPECT_NEAR(rate(s, static_cast<std::int64_t>(t)), golden.out[0].f[t], 1e-11 * golden.out[0].f[t] + 1e-15)
          << name << " at " << t;
  }
  EXPECT_EQ(found, schedules().size());
}

// One program computes all schedules from its own step counter.
TEST(Schedule, CompiledBehindACounter) {
  Graph g;
  const Tensor done = counter(g);
  for (const auto& [name, s] : schedules()) g.output(name, s(done));
  const Program p = compile(g, generic() | test::device());
  EXPECT_EQ(p.interpreted(), 0u);
  Context c(p);
  for (std::size_t t = 0; t < 60; ++t) {
    c.run();
    for (const auto& [name, s] : schedules()) {
      const double want = optim_goldens().at("schedule " + name).out[0].f[t];
      EXPECT_NEAR(c.get_f64(name)[0], want, 1e-11 * want + 1e-15) << name << " at " << t;
    }
  }
}

TEST(Schedule, BeyondTheirEnds) {
  EXPECT_DOUBLE_EQ(rate(constant(0.25), 1 << 30), 0.25);
  EXPECT_NEAR(rate(one_cycle(0.3, 60), 1000), 0.3 / 25 / 1e4, 1e-18);
  EXPECT_EQ(rate(polynomial(0.3, 10, 2), 99), 0);
  EXPECT_NEAR(rate(cosine_annealing(0.3, 50), std::int64_t{1} << 50),
              rate(cosine_annealing(0.3, 50), (std::int64_t{1} << 50) % 100), 1e-15);
  // the cycle of lengths 4, 8, 16, ... that begins at 2^42 - 4
  EXPECT_DOUBLE_EQ(rate(cosine_annealing_warm_restarts(0.3, 4, 2), (std::int64_t{1} << 42) - 4), 0.3);
  EXPECT_NEAR(rate(cosine_annealing_warm_restarts(0.3, 4, 2), (std::int64_t{1} << 42) - 5), 0, 1e-20);
  EXPECT_DOUBLE_EQ(rate(warm_up(constant(0.3), 0), 0), 0.3);
  // a phase of a cycle may have no steps
  EXPECT_DOUBLE_EQ(rate(one_cycle(0.3, 10, {.pct_start = 0.1}), 0), 0.3);
  EXPECT_DOUBLE_EQ(rate(one_cycle(0.3, 1), 0), 0.3 / 25 / 1e4);
}

TEST(ReduceOnPlateau, RatesAreThoseOfPyTorch) {
  using Plateau = ReduceOnPlateau;
  const std::map<std::string, Plateau::Options> options{
      {"plain", {.patience = 2}},
      {"options",
       {.mode = Plateau::Mode::Max,
        .factor = 0.5,
        .patience = 1,
        .threshold = 0.01,
        .threshold_mode = Plateau::Threshold::Abs,
        .cooldown = 3,
        .min_lr = 0.01}},
      {"relative", {.mode = Plateau::Mode::Max, .factor = 0.7, .patience = 0, .threshold = 0.02, .cooldown = 1}},
  };
  std::size_t found = 0;
  for (const auto& [name, golden] : optim_goldens()) {
    if (!name.starts_with("plateau ")) continue;
    ++found;
    Plateau p(0.3, options.at(name.substr(8)));
    for (std::size_t k = 0; k < golden.in.at(0).size(); ++k)
      EXPECT_NEAR(p.step(golden.in[0].f[k]), golden.out.at(0).f[k], 1e-12) << name << " at " << k;
    EXPECT_LT(p.lr(), 0.3) << name;
  }
  EXPECT_EQ(found, options.size());
}
// A NaN loss is no improvement.
TEST(ReduceOnPlateau, NaNIsNoImprovement) {
  ReduceOnPlateau p(1, {.patience = 0});
  EXPECT_EQ(p.step(1), 1);
  EXPECT_EQ(p.step(kNaN), 0.1);
}

#define SAYS(sentence, ...) expect_error([&] { (void)(__VA_ARGS__); }, sentence, "")

// clang-format off
TEST(Schedule, Errors) {
  Graph g;
  SAYS("schedule: steps are f32 []; they must be i64 without axes, as counter() gives", constant(1)(g.input("x", {})));
  SAYS("schedule: steps are i64 [2]; they must be i64 without axes, as counter() gives", constant(1)(g.input("v", {2}, DType::I64)));
  SAYS("constant: lr is -1; it must be a number that is not negative", constant(-1));
  SAYS("step_lr: step_size is 0; it must be at least 1", step_lr(1, 0));
  SAYS("exponential: gamma is nan; it must be a number that is not negative", exponential(1, kNaN));
  SAYS("linear: total_iters is 0; it must be at least 1", linear(1, 0, 1, 0));
  SAYS("cosine_annealing: t_max is 0; it must be at least 1", cosine_annealing(1, 0));
  SAYS("cosine_annealing: eta_min is inf; it must be finite", cosine_annealing(1, 5, kInf));
  SAYS("cosine_annealing_warm_restarts: t_mult is 0; it must be at least 1", cosine_annealing_warm_restarts(1, 5, 0));
  SAYS("one_cycle: pct_start is 2; it lies between 0 and 1", one_cycle(1, 5, {.pct_start = 2}));
  SAYS("one_cycle: a rate is divided by 0; div_factor and final_div_factor are above 0", one_cycle(1, 5, {.div_factor = 0}));
  SAYS("sequential: 2 schedules need one milestone between each two, not 0", sequential({constant(1), constant(2)}, {}));
  SAYS("sequential: milestones must rise, from 0", sequential({constant(1), constant(2), constant(3)}, {4, 4}));
  SAYS("warm_up: steps is -1; it must not be negative", warm_up(constant(1), -1));
  SAYS("ReduceOnPlateau: factor is 1; it lies between 0 and 1", ReduceOnPlateau(1, {.factor = 1}));
  SAYS("ReduceOnPlateau: patience is -1, cooldown 0; neither may be negative", ReduceOnPlateau(1, {.patience = -1}));
}
// clang-format on
