// Twenty steps of every optimiser give PyTorch's parameters and states (tests/goldens/optim.txt), in the reference and
// compiled.
#include "lightcone/optim/optim.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/optim/schedule.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"
#include "on_device.h"
#include "optim_goldens.h"

using namespace lc;
using namespace lc::optim;

namespace {

constexpr int kSteps = 20;

// The parameters of a golden case, with the gradient curvature * (parameter - target) + noise.
struct Problem {
  Graph g;
  std::vector<std::string> names;
  std::vector<Update> updates;
  std::map<std::string, Value> begin;               // initial values of states that are not 0
  std::map<std::string, std::vector<Value>> noise;  // by run

  Problem(const std::vector<std::string>& parameters, DType type) : names(parameters) {
    const std::vector<Value>& in = optim_goldens().at("problem").in;
    for (const std::string& p : parameters) {
      const std::size_t at = p == "w" ? 0 : p == "b" ? 4 : 8;
      const Value &first = in.at(at), &all = in.at(at + 3);
      const Shape shape(first.shape.begin(), first.shape.end());
      const Tensor parameter = g.input(p, shape, type);
      const Tensor curvature = value(in.at(at + 1), type), target = value(in.at(at + 2), type);
      updates.push_back({parameter, curvature * (parameter - target) + g.input("noise." + p, shape, type)});
      begin[p] = as(first, type);
      for (std::size_t k = 0; k < kSteps; ++k) {
        Value n = make_value(type, first.shape);
        std::copy_n(all.f.begin() + static_cast<std::ptrdiff_t>(k * n.size()), n.size(), n.f.begin());
        noise["noise." + p].push_back(n);
      }
    }
  }
  static Value as(Value v, DType type) {
    v.dtype = type;
    return v;
  }
  Tensor value(const Value& v, DType type) {
    std::vector<Tensor> parts;
    for (const double x : v.f) parts.push_back(full(g, {1}, x, type));
    return concat(parts, 0).reshape(Shape(v.shape.begin(), v.shape.end()));
  }
  std::map<std::string, Value> inputs(int run, const std::map<std::string, Value>& states) const {
    std::map<std::string, Value> in;
    for (const auto& [name, values] : noise) in[name] = values[static_cast<std::size_t>(run)];
    for (const auto& [name, v] : states) in[name] = v;
    return in;
  }
  std::map<std::string, Value> states() const {  // Returns the states before the first run.
    std::map<std::string, Value> all;
    for (const Assignment& a : g.assignments()) {
      const Node& n = g[a.state];
      std::vector<std::int64_t> shape;
      for (const Dim& d : n.shape) shape.push_back(*d.constant());
      all[n.name] = begin.contains(n.name) ? begin.at(n.name) : make_value(n.dtype, shape);
    }
    return all;
  }
};

struct Case {
  const char* name;
  std::vector<std::string> parameters;
  std::function<void(Problem&)> write;
  std::string suffix = "";  // the suffix of the states in the trajectory
};
template <class O>
Case plain(const char* name, O optimizer, std::vector<std::string> parameters = {"w", "b"}) {
  return {name, std::move(parameters), [=](Problem& p) { step(optimizer, p.updates); }};
}

const std::vector<std::string> kBoth{"w", "b"}, kMatrices{"w", "m"};
// clang-format off
const std::vector<Case> kCases{
    plain("SGD", SGD{.lr = 0.1}),
    plain("SGD momentum", SGD{.lr = 0.05, .momentum = 0.9}),
    plain("SGD dampening", SGD{.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1}),
    plain("SGD nesterov", SGD{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}),
    plain("SGD maximize", SGD{.lr = 0.01, .momentum = 0.5, .maximize = true}),
    plain("Adam", Adam{}),
    plain("Adam options", Adam{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1, .maximize = true}),
    plain("Adam amsgrad", Adam{.lr = 0.1, .beta1 = 0.7, .beta2 = 0.9, .amsgrad = true}),
    plain("AdamW", AdamW{}),
    plain("AdamW options", AdamW{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.2}),
    plain("AdamW amsgrad", AdamW{.lr = 0.1, .beta1 = 0.7, .beta2 = 0.9, .amsgrad = true, .maximize = true}),
    plain("RMSprop", RMSprop{}),
    plain("RMSprop centered", RMSprop{.lr = 0.05, .alpha = 0.9, .eps = 1e-4, .weight_decay = 0.05, .centered = true}),
    plain("RMSprop momentum", RMSprop{.lr = 0.02, .alpha = 0.9, .momentum = 0.8, .centered = true, .maximize = true}),
    plain("RMSprop tensorflow", RMSprop{.lr = 0.05, .alpha = 0.9, .eps = 1e-3, .convention = RMSprop::Convention::TensorFlow}),
    plain("RMSprop tensorflow momentum", RMSprop{.lr = 0.02, .alpha = 0.9, .eps = 1e-7, .momentum = 0.8, .centered = true, .convention = RMSprop::Convention::TensorFlow}),
    plain("Adagrad", Adagrad{}),
    plain("Adagrad options", Adagrad{.lr = 0.3, .lr_decay = 0.1, .weight_decay = 0.05, .initial_accumulator_value = 0.5, .eps = 1e-6}),
    plain("Adadelta", Adadelta{}),
    plain("Adadelta options", Adadelta{.lr = 0.7, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.05, .maximize = true}),
    plain("NAdam", NAdam{}),
    plain("NAdam options", NAdam{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1, .momentum_decay = 0.01}),
    plain("NAdam decoupled", NAdam{.lr = 0.1, .weight_decay = 0.1, .decoupled_weight_decay = true}),
    plain("RAdam", RAdam{}),
    plain("RAdam options", RAdam{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}),
    plain("RAdam decoupled", RAdam{.lr = 0.1, .weight_decay = 0.1, .decoupled_weight_decay = true, .maximize = true}),
    plain("Lion", Lion{}),
    plain("Lion options", Lion{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .maximize = true}),
    plain("LAMB", LAMB{}),
    plain("LAMB options", LAMB{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}),
    plain("Muon", Muon{}, kMatrices),
    plain("Muon options", Muon{.lr = 0.1, .weight_decay = 0.05, .momentum = 0.8, .nesterov = false, .ns_steps = 3, .adjust_lr_fn = Muon::AdjustLr::MatchRmsAdamW}, kMatrices),
    {"groups", kBoth, [](Problem& p) { step({{AdamW{.lr = 0.1}, {p.updates[0]}}, {AdamW{.lr = 0.02, .weight_decay = 0}, {p.updates[1]}}}); }},
    {"scheduled", kBoth, [](Problem& p) {
       const Tensor done = counter(p.g);
       step(AdamW{}, p.updates, {.lr = cosine_annealing(0.1, 15, 0.01)(done), .step = done});
     }},
    {"clip norm 1", kBoth, [](Problem& p) { step(SGD{.lr = 0.1}, clip_grad_norm(p.updates, 1.5, 1).updates); }},
    {"clip norm 2", kBoth, [](Problem& p) { step(SGD{.lr = 0.1}, clip_grad_norm(p.updates, 1.5).updates); }},
    {"clip norm 3", kBoth, [](Problem& p) { step(SGD{.lr = 0.1}, clip_grad_norm(p.updates, 1.5, 3).updates); }},
    {"clip norm inf", kBoth, [](Problem& p) { step(SGD{.lr = 0.1}, clip_grad_norm(p.updates, 1.5, kInf).updates); }},
    {"clip value", kBoth, [](Problem& p) { step(SGD{.lr = 0.1}, clip_grad_value(p.updates, 0.5)); }},
    {"accumulate sum", kBoth, [](Problem& p) {
       const Accumulated a = accumulate(p.updates, 3);
       step(AdamW{.lr = 0.1}, a.updates, {.when = a.when});
     }},
    {"accumulate mean", kBoth, [](Problem& p) {
       const Accumulated a = accumulate(p.updates, 3, Reduction::Mean);
       step(AdamW{.lr = 0.1}, a.updates, {.when = a.when});
     }},
    {"ema", kBoth, [](Problem& p) { ema(step(SGD{.lr = 0.1}, p.updates), 0.9); }, ".ema"},
    {"swa", kBoth, [](Problem& p) { swa(step(SGD{.lr = 0.1}, p.updates)); }, ".swa"},
    {"swa start", kBoth, [](Problem& p) { swa(step(SGD{.lr = 0.1}, p.updates), 5, 3); }, ".swa"},
};
// clang-format on

// The expected trajectories and final states of a case.
class Wanted {
 public:
  Wanted(const Case& c, const Problem& p, double tolerance)
      : case_(c), problem_(p), golden_(optim_goldens().at(c.name)), tolerance_(tolerance) {}

  void step(int k, const std::function<Value(const std::string&)>& state) const {
    for (std::size_t i = 0; i < problem_.names.size(); ++i) {
      const Value got = state(problem_.names[i] + case_.suffix), &all = golden_.out.at(i);
      for (std::size_t e = 0; e < got.size(); ++e)
        expect(str_cat(problem_.names[i], "[", e, "] in step ", k),
               all.f.at(static_cast<std::size_t>(k) * got.size() + e), got.f[e]);
    }
  }
  void end(const std::function<Value(const std::string&)>& state) const {
    for (const auto& [name, want] : golden_.states) {
      const Value got = state(name);
      ASSERT_EQ(got.size(), want.size()) << case_.name << ": " << name;
      for (std::size_t e = 0; e < want.size(); ++e) expect(str_cat(name, "[", e, "]"), want.f[e], got.f[e]);
    }
  }

 private:
  void expect(const std::string& what, double want, double got) const {
    EXPECT_NEAR(got, want, tolerance_ * (std::abs(want) + 0.1)) << case_.name << ": " << what;
  }
  const Case& case_;
  const Problem& problem_;
  const OptimGolden& golden_;
  double tolerance_;
};

void run_compiled(const Case& c, DType type, double tolerance) {
  Problem p(c.parameters, type);
  c.write(p);
  const Program program = compile(p.g, generic() | test::device());
  EXPECT_EQ(program.interpreted(), 0u) << c.name;
  Context context(program);
  const auto set = [&](const std::string& name, const Value& v) {
    std::vector<std::byte> bytes(v.size() * size_of(v.dtype));
    write_value(v, bytes.data());
    context.set_bytes(name, bytes.data(), bytes.size());
  };
  for (const auto& [name, v] : p.begin) set(name, v);  // all other states are 0 initially
  const Wanted wanted(c, p, tolerance);
  const auto state = [&](const std::string& name) { return context.value(name); };
  for (int k = 0; k < kSteps; ++k) {
    for (const auto& [name, v] : p.inputs(k, {})) set(name, v);
    context.run();
    wanted.step(k, state);
  }
  wanted.end(state);
}

}  // namespace

TEST(Optim, TrajectoriesAndStatesAreThoseOfPyTorch) {
  for (const Case& c : kCases) {
    Problem p(c.parameters, DType::F64);
    c.write(p);
    const Wanted wanted(c, p, 1e-11);
    std::map<std::string, Value> states = p.states();
    for (int k = 0; k < kSteps; ++k) {
      states = interpret(p.g, p.inputs(k, states)).states;
      wanted.step(k, [&](const std::string& name) { return states.at(name); });
    }
    wanted.end([&](const std::string& name) { return states.at(name); });
  }
}
TEST(Optim, EveryTrajectoryIsRun) {
  std::set<std::string> names;
  for (const Case& c : kCases) names.insert(c.name);
  for (const auto& [name, golden] : optim_goldens())
    if (name != "problem" && !name.starts_with("schedule ") && !name.starts_with("plateau ")) {
      EXPECT_TRUE(names.contains(name)) << name;
    }
}
TEST(Optim, CompiledInF64) {
  for (const Case& c : kCases) run_compiled(c, DType::F64, 1e-10);
}
// Twenty steps in f32. Newton-Schulz iterations amplify rounding errors more than the other rules do.
TEST(Optim, CompiledInF32) {
  for (const Case& c : kCases) run_compiled(c, DType::F32, std::string(c.name).starts_with("Muon") ? 2e-4 : 2e-5);
}

namespace {
struct Kernels {
  std::size_t loops = 0, scalars = 0;  // kernels over the parameter; scalar kernels
  std::size_t copies = 0, arena = 0;   // states that are written elsewhere and copied; arena bytes
};
Kernels compiled(const std::function<void(std::vector<Update>)>& write) {
  Graph g;
  const Tensor p = g.input("p", {1 << 16}), d = g.input("d", {1 << 16});
  write({{p, d}});
  const Program program = compile(g, generic() | test::device());
  EXPECT_EQ(program.interpreted(), 0u);
  const Graph& after = program.graph();
  Kernels c;
  for (NodeId id = 0; id < after.size(); ++id)
    if (after[id].op == Op::Kernel) ++(after[id].shape.empty() ? c.scalars : c.loops);
  for (const Assignment* a : program.plan().copies) c.copies += !after[a->state].shape.empty();
  c.arena = program.plan().arena_bytes;
  return c;
}
}  // namespace

// Each array is written by one loop, in place, which also reads the step's scalars. No temporary has the parameter's
// size.
TEST(Optim, OneLoopAnArrayInPlace) {
  const auto check = [](const char* name, std::size_t arrays, const Optimizer& o) {
    const Kernels c = compiled([&](const std::vector<Update>& u) { step(o, u); });
    EXPECT_EQ(c.loops, arrays) << name;
    EXPECT_EQ(c.copies, 0u) << name;
    EXPECT_LT(c.arena, 4096u) << name;
  };
  check("SGD", 1, SGD{});
  check("SGD momentum", 2, SGD{.momentum = 0.9, .nesterov = true});
  check("AdamW", 3, AdamW{});
  check("AdamW amsgrad", 4, AdamW{.amsgrad = true});
  check("RMSprop", 2, RMSprop{});
  check("RMSprop centered, momentum", 4, RMSprop{.momentum = 0.9, .centered = true});
  check("Adagrad", 2, Adagrad{.initial_accumulator_value = 0.1});
  check("NAdam", 3, NAdam{});
  check("RAdam", 3, RAdam{});
  check("Lion", 2, Lion{});
  const Kernels a = compiled([](const std::vector<Update>& u) {
    const Accumulated sum = accumulate(u, 4);
    ema(step(AdamW{}, sum.updates, {.when = sum.when}));
  });
  EXPECT_EQ(a.loops, 5u);
  EXPECT_EQ(a.copies, 0u);
  EXPECT_LT(a.arena, 4096u);
}

// States that begin at zero need no loading: a context zeroes them, and clear_states() does so again.
TEST(Optim, StatesBeginAtZero) {
  Graph g;
  const Tensor p = g.input("p", {3}), d = g.input("d", {3});
  const Step s = step(NAdam{.lr = 0.1}, {{p, d}});
  EXPECT_EQ(s.states.size(), 4u);  // step, mu_product, two moments
  g.output("next", s.next[0]);
  const Program program = compile(g, generic() | test::device());
  Context c(program);
  const auto two_steps = [&] {
    c.set("p", std::vector<float>{1, 2, 3}).set("d", std::vector<float>{1, -1, 2}).run().run();
    return c.get("next");
  };
  const std::vector<float> first = two_steps();
  EXPECT_EQ(c.get_i64("optim.step"), std::vector<std::int64_t>{2});
  c.clear_states();
  EXPECT_EQ(two_steps(), first);
}
// A loaded parameter is a state, too: from its value, each context proceeds independently.
TEST(Optim, LoadedParametersAreStates) {
  Graph g;
  const Tensor p = g.parameter("p", {2}, DType::F32), d = g.input("d", {2});
  step(SGD{.lr = 0.5}, {{p, d}});
  Program program = compile(g, generic() | test::device());
  const float begin[] = {1, 2};
  program.load("p", begin, sizeof begin);
  for (const int runs : {1, 3}) {
    Context c(program);
    c.set("d", std::vector<float>{2, -2});
    for (int k = 0; k < runs; ++k) c.run();
    EXPECT_EQ(c.get("p"),
              (std::vector<float>{1 - 1.0F * static_cast<float>(runs), 2 + 1.0F * static_cast<float>(runs)}));
  }
}
// A run without a step (`when` is false) changes nothing, whatever the gradients are.
TEST(Optim, NothingChangesWithoutAStep) {
  Graph g;
  const Tensor p = g.input("p", {2}), d = g.input("d", {2}), when = g.input("when", {}, DType::Bool);
  const Step s = step({{AdamW{}, {{p, d}}}, {NAdam{}, {{g.input("q", {2}), d}}}}, {.when = when});
  ema(s), swa(s);
  std::map<std::string, Value> in;
  for (const Assignment& a : g.assignments()) {
    Value v = make_value(g[a.state].dtype,
                         g[a.state].shape.empty() ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{2});
    for (std::size_t k = 0; k < v.size(); ++k) is_float(v.dtype) ? void(v.f[k] = 0.25) : void(v.i[k] = 3);
    in[g[a.state].name] = v;
  }
  const std::map<std::string, Value> before = in;
  in["d"] = make_value(DType::F32, {2});
  in["d"].f = {kNaN, kInf};
  in["when"] = make_value(DType::Bool, {});
  for (const auto& [name, v] : interpret(g, in).states) {
    EXPECT_EQ(v.f, before.at(name).f) << name;
    EXPECT_EQ(v.i, before.at(name).i) << name;
  }
}
// A half parameter is updated in f32 with f32 states, and rounded once.
TEST(Optim, HalvesAreRoundedOnce) {
  for (const DType type : {DType::F16, DType::BF16}) {
    Graph g;
    const Tensor p = g.input("p", {4}, type), d = g.input("d", {4}, type);
    const Step s = step(Adam{.lr = 0.25}, clip_grad_norm({{p, d}}, 1).updates);
    EXPECT_EQ(s.next[0].dtype(), type);
    for (const Tensor& state : s.states) EXPECT_NE(state.dtype(), type);
    const VerifyReport r = verify(g, generic() | test::device(), {.trials = 2, .wild = false});
    EXPECT_TRUE(r.ok()) << r.str();
  }
}
// As torch.nn.utils.clip_grad_norm_, it returns the norm before clipping. A norm of 0 does not divide by 0.
TEST(Optim, TheNormOfGradients) {
  Graph g;
  const Tensor p = g.input("p", {2}), d = g.input("d", {2});
  const Clipped c = clip_grad_norm({{p, d}}, 1);
  g.output("norm", c.norm), g.output("gradient", c.updates[0].gradient);
  std::map<std::string, Value> in{{"d", make_value(DType::F32, {2})}};
  Results r = interpret(g, in);
  EXPECT_EQ(r.outputs.at("norm").f[0], 0);
  EXPECT_EQ(r.outputs.at("gradient").f, (std::vector<double>{0, 0}));
  in["d"].f = {3, 4};
  r = interpret(g, in);
  EXPECT_EQ(r.outputs.at("norm").f[0], 5);
  EXPECT_NEAR(r.outputs.at("gradient").f[1], 0.8, 1e-6);
  in["d"].f = {kNaN, 4};
  EXPECT_TRUE(std::isnan(interpret(g, in).outputs.at("gradient").f[1]));
}
TEST(Optim, SymbolicSizesAndEmptyParameters) {
  Graph g;
  const Dim n = Dim::symbol("n", 0, 40);
  const Tensor p = g.input("p", {n, 3}), d = g.input("d", {n, 3}), e = g.input("e", {0, 4}), f = g.input("f", {0, 4});
  step(LAMB{.weight_decay = 0.1}, clip_grad_norm({{p, d}, {e, f}}, 1).updates);
  for (const std::int64_t size : {0, 1, 40}) {
    const VerifyReport r = verify(g, generic() | test::device(), {.trials = 1, .wild = false, .sizes = {{"n", size}}});
    EXPECT_FALSE(r.fault) << r.str();
  }
}

#define SAYS(sentence, ...) expect_error([&] { (void)(__VA_ARGS__); }, sentence, "optim_test.cpp")

// clang-format off
TEST(Optim, Errors) {
  Graph g, other;
  const Tensor p = g.input("p", {4, 3}), d = g.input("d", {4, 3}), v = g.input("v", {3}), i = g.input("i", {3}, DType::I64),
               s = g.input("s", {}), q = other.input("q", {3});
  const Dim n = Dim::symbol("n", 1, 8);
  const Tensor z = g.input("z", {n, 3}), b = g.input("b", {}, DType::Bool);
  const std::vector<Update> u{{p, d}};
  SAYS("optim.step: there is no parameter to update", step(SGD{}, {}));
  SAYS("optim.step: an update needs a parameter and a gradient; one of them was never given a value", step(SGD{}, {{p, Tensor()}}));
  SAYS("optim.step: 'p' is [4, 3], its gradient [3]", step(SGD{}, {{p, v}}));
  SAYS("optim.step: 'i' is i64, its gradient i64; both must be floating", step(SGD{}, {{i, i}}));
  SAYS("optim.step: the parameter [3, 4] is not an input read as it is, so it cannot be a state", step(SGD{}, {{p.transpose(0, 1), d.transpose(0, 1)}}));
  SAYS("optim.step: 'v' and its gradient belong to different graphs", step(SGD{}, {{v, q}}));
  SAYS("optim.step: 'q' belongs to another graph than 'p'", step(SGD{}, {{p, d}, {q, q}}));
  SAYS("optim.step: lr is f32 [3]; it must be floating without axes", step(SGD{}, u, {.lr = v, .step = g.constant(0, DType::I64)}));
  SAYS("optim.step: step is f32 []; it must be i64 without axes", step(SGD{}, u, {.step = s}));
  SAYS("optim.step: when is f32 []; it must be bool without axes", step(SGD{}, u, {.when = s}));
  SAYS("optim.counter: when is f32 [3]; it must be bool without axes", counter(g, "c", v));
  SAYS("optim.counter: when belongs to another graph", counter(other, "c", b));
  const StepOptions counted{.step = g.constant(0, DType::I64)};
  SAYS("optim.step: lr is -1; it must be a number that is not negative", step(SGD{.lr = -1}, u, counted));
  SAYS("SGD: momentum is nan; it must be a number that is not negative", step(SGD{.momentum = kNaN}, u, counted));
  SAYS("SGD: nesterov needs a momentum and no dampening, not 0 and 0", step(SGD{.nesterov = true}, u, counted));
  SAYS("Adam: beta1 is 1; it lies in [0, 1)", step(Adam{.beta1 = 1}, u, counted));
  SAYS("AdamW: beta2 is -0.1; it lies in [0, 1)", step(AdamW{.beta2 = -0.1}, u, counted));
  SAYS("AdamW: eps is -1; it must be a number that is not negative", step(AdamW{.eps = -1}, u, counted));
  SAYS("RMSprop: alpha is -1; it must be a number that is not negative", step(RMSprop{.alpha = -1}, u, counted));
  SAYS("Adadelta: rho is 2; it lies between 0 and 1", step(Adadelta{.rho = 2}, u, counted));
  SAYS("Adagrad: lr_decay is -1; it must be a number that is not negative", step(Adagrad{.lr_decay = -1}, u, counted));
  SAYS("Muon: is for matrices of known sizes, not for 'v' [3]; give other parameters to AdamW", step(Muon{}, {{v, v}}, counted));
  SAYS("Muon: is for matrices of known sizes, not for 'z' [n, 3]; give other parameters to AdamW", step(Muon{}, {{z, z}}, counted));
  SAYS("Muon: ns_steps is 100; it lies between 0 and 99", step(Muon{.ns_steps = 100}, u, counted));
  SAYS("clip_grad_norm: there is no gradient", clip_grad_norm({}, 1));
  SAYS("clip_grad_norm: max_norm is -1; it must be a number that is not negative", clip_grad_norm(u, -1));
  SAYS("clip_grad_norm: norm_type is 0; it must be above 0", clip_grad_norm(u, 1, 0));
  SAYS("clip_grad_value: clip_value is nan; it must be a number that is not negative", clip_grad_value(u, kNaN));
  SAYS("accumulate: a step in every 0 runs; there must be at least 1", accumulate(u, 0));
  SAYS("accumulate: gradients are added up (Reduction::Sum) or averaged (Mean)", accumulate(u, 2, Reduction::None));
  SAYS("ema: decay is 1.5; it lies between 0 and 1", ema({s, {}, {p}, {p}, {}}, 1.5));
  SAYS("ema: the step has no parameters; give what step() returned", ema({}));
  SAYS("swa: averages from step -1 on every 1; give a step from 0 and a number from 1", swa({s, {}, {p}, {p}, {}}, -1));
  step(SGD{}, u, {.name = "twice"});
  SAYS("optim.step: 'p' is assigned twice", step(SGD{}, u, counted));
  SAYS("optim.step: 'twice.step' counts the steps of this graph already: give it as .step, or these steps a .name of their own", step(SGD{}, {{v, v}}, {.name = "twice"}));
}
// clang-format on
