// Schedulers take the timesteps that diffusers' take, and end where theirs end; their numbers by hand.
#include "lightcone/models/diffusion/sampling/sampling_plan.h"

#include <numeric>

#include "error_of.h"
#include "tiny_models.h"

using namespace lc;
using namespace lc::diffusion;

namespace {

using nlohmann::json;

SchedulerConfig config_of(const json& settings) {
  const TempDir folder;
  spit(folder / "scheduler_config.json", settings.dump());
  return SchedulerConfig::from(ConfigFile(folder / "scheduler_config.json", {}));
}

// Runs a plan in f64, as a compiled program does in f32. `model` answers to what it is shown at a timestep.
template <class Model>
std::vector<double> run(const SamplingPlan& p, std::vector<double> x, const Model& model, bool from_noise = true) {
  std::array<std::vector<double>, kRows> state;
  state.fill(std::vector<double>(x.size()));
  if (from_noise)
    for (double& v : x) v *= p.first_scale;
  state[0] = x;
  for (const SamplingStep& s : p.steps) {
    std::array<std::vector<double>, kRows> next = state;
    for (std::size_t k = 0; k < x.size(); ++k) {
      std::array<double, kColumns> v = {};
      v[kSample] = state[0][k];
      v[kOutput] = model(s.input_scale * v[kSample], s.timestep);
      v[kClean] = s.from_sample * v[kSample] + s.from_output * v[kOutput];
      if (s.limit > 0) v[kClean] = std::fmin(std::fmax(v[kClean], -s.limit), s.limit);
      for (std::size_t m = 0; m < kMemories; ++m) v[kMemory + m] = state[1 + m][k];
      v[kNoise] = std::cos(static_cast<double>(k) + 1);
      for (std::size_t r = 0; r < kRows; ++r)
        next[r][k] = std::inner_product(v.begin(), v.end(), s.update[r].begin(), 0.0);
    }
    state = next;
  }
  return state[0];
}

// Settings, timesteps and ends of tools/make_diffusion_goldens.py. diffusers computes its tables in f32.
TEST(Sampling, SchedulersAreDiffusers) {
  const json goldens = json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/diffusion.json"));
  for (const json& c : goldens["schedulers"]) {
    const SchedulerConfig config = config_of(c["config"]);
    const SamplingPlan p = sampling_plan(config, {.steps = c["steps"],
                                                  .eta = c["eta"],
                                                  .length = c.value("length", std::int64_t{0}),
                                                  .evenly = c.value("evenly", false)});
    const std::string name = c["config"].dump();
    std::vector<double> timesteps;
    for (const SamplingStep& s : p.steps) timesteps.push_back(s.timestep);
    EXPECT_LT(test::farthest(timesteps, test::numbers_of(c["timesteps"])), 2e-2) << name;
    EXPECT_NEAR(p.first_scale, c["first_scale"].get<double>(), 1e-3) << name;
    const auto model = [](double shown, double t) { return std::sin(t / 100) * shown; };
    std::vector<double> x;
    for (int k = 0; k < 6; ++k) x.push_back(std::sin(k));
    const std::vector<double> want = test::numbers_of(c["last"]);
    double largest = 1;
    for (const double v : want) largest = std::fmax(largest, std::fabs(v));
    EXPECT_LT(test::farthest(run(p, x, model), want), 3e-4 * largest) << name;
  }
}

// Three timesteps with betas of a half, by hand: alpha bar is 1/2, 1/4, 1/8.
TEST(Sampling, ByHand) {
  const SchedulerConfig c = config_of({{"_class_name", "DDIMScheduler"},
                                       {"num_train_timesteps", 3},
                                       {"trained_betas", {0.5, 0.5, 0.5}},
                                       {"clip_sample", false}});
  EXPECT_EQ(alphas_cumprod(c), (std::vector<double>{0.5, 0.25, 0.125}));
  const SamplingPlan p = sampling_plan(c, {.steps = 3});
  EXPECT_EQ(p.steps.at(0).timestep, 2);
  EXPECT_NEAR(p.steps[0].from_sample, std::sqrt(8), 1e-12);  // x0 = (x - sqrt(7/8) e) / sqrt(1/8)
  EXPECT_NEAR(p.steps[0].from_output, -std::sqrt(7), 1e-12);
  EXPECT_NEAR(p.steps[0].update[0][kClean], 0.5, 1e-12);  // sqrt(1/4) x0 + sqrt(3/4) e
  EXPECT_NEAR(p.steps[0].update[0][kOutput], std::sqrt(0.75), 1e-12);
  EXPECT_NEAR(p.steps[2].update[0][kClean], 1, 1e-12);  // the last step ends at x0
  EXPECT_NEAR(p.steps[2].update[0][kOutput], 0, 1e-12);
  const SamplingPlan late = sampling_plan(c, {.steps = 3, .strength = 0.7});  // two of the three steps
  EXPECT_EQ(late.steps.size(), 2u);
  EXPECT_NEAR(late.steps[0].level.alpha, 0.5, 1e-12);
  const SamplingPlan euler = sampling_plan(c.with("euler"), {.steps = 3});
  EXPECT_NEAR(euler.steps[0].level.sigma, std::sqrt(7), 1e-12);
  EXPECT_NEAR(euler.steps[0].input_scale, std::sqrt(1.0 / 8), 1e-12);
}

// Runs by the tiny oracles' maker, whose timesteps begin at 1: eps = sin(t / 100) x. Its DPM-Solver++ is not the
// paper's (its sum has the weights of predicted noise and the values of predicted samples), and is left out.
TEST(Sampling, TinyOracles) {
  NEEDS_DATA("models/tiny/diffusion_oracle.json");
  const auto oracle = [](const char* name) { return json::parse(slurp(data(std::string("models/tiny/") + name))); };
  const json ddim = oracle("diffusion_oracle.json");
  const SchedulerConfig c = config_of({{"_class_name", "UniPCMultistepScheduler"}, {"num_train_timesteps", 200}});
  const std::vector<double> alphas = alphas_cumprod(c);
  for (std::size_t k = 0; k < ddim["probe_t"].size(); ++k)
    EXPECT_NEAR(alphas.at(ddim["probe_t"][k].get<std::size_t>() - 1), ddim["alpha_bar"][k].get<double>(), 1e-12);
  const auto model = [](double shown, double t) { return std::sin(t / 100) * shown; };
  const auto level = [&](std::size_t t) {
    return t == 0 ? NoiseLevel{1, 0} : NoiseLevel{std::sqrt(alphas[t - 1]), std::sqrt(1 - alphas[t - 1])};
  };
  std::vector<std::size_t> even;
  for (int k = 9; k >= 0; --k) even.push_back(1 + static_cast<std::size_t>(std::nearbyint(k * 199 / 9.0)));
  even.push_back(0);
  Levels l;
  SamplingPlan p;
  for (std::size_t k = 0; k < 10; ++k) {
    p.steps.push_back(ddim_step(c, static_cast<double>(even[k]), level(even[k]), level(even[k + 1]), 0));
    l.timesteps.push_back(static_cast<double>(even[k])), l.levels.push_back(level(even[k]));
  }
  l.levels.push_back(level(0));
  const std::vector<double> start = test::numbers_of(ddim["x_start"]);
  EXPECT_LT(test::farthest(run(p, start, model), test::numbers_of(ddim["ddim_final"])), 1e-9);
  EXPECT_LT(
      test::farthest(run(plan_unipc(c, l), start, model), test::numbers_of(oracle("unipc_oracle.json")["unipc_final"])),
      1e-9);
  // Heun's method takes the timesteps nearest to Karras' levels, and samples whose alpha is 1.
  const auto sigma = [&](std::size_t t) { return level(t).sigma / level(t).alpha; };
  Levels heun;
  for (int k = 0; k < 10; ++k) {
    const double most = std::pow(sigma(200), 1 / 7.0), least = std::pow(sigma(1), 1 / 7.0);
    const double wanted = std::pow(most + k / 9.0 * (least - most), 7);
    std::size_t best = 1;
    for (std::size_t t = 2; t <= 200; ++t)
      if (std::fabs(sigma(t) - wanted) < std::fabs(sigma(best) - wanted)) best = t;
    heun.timesteps.push_back(static_cast<double>(best)), heun.levels.push_back({1, sigma(best)});
  }
  heun.levels.push_back({1, 0});
  std::vector<double> scaled = start;
  for (double& x : scaled) x /= level(200).alpha;
  EXPECT_LT(test::farthest(run(plan_heun(c, heun), scaled, model),
                           test::numbers_of(oracle("heun_oracle.json")["heun_karras_final"])),
            1e-9);
}

TEST(Sampling, MistakesAreNamed) {
  const auto wrong = [](const json& settings) { return error_of([&] { config_of(settings); }); };
  EXPECT_PRED2(contains, wrong({{"_class_name", "KDPM2DiscreteScheduler"}}), "the scheduler 'KDPM2DiscreteScheduler'");
  EXPECT_PRED2(contains, wrong({{"_class_name", "DDIMScheduler"}, {"beta_strat", 0.1}}),
               "beta_strat is 0.1, and no key of this name is known of DDIMScheduler (the nearest is beta_start)");
  EXPECT_PRED2(contains, wrong({{"_class_name", "DDIMScheduler"}, {"thresholding", true}}), "thresholding is true");
  EXPECT_PRED2(contains, wrong({{"_class_name", "DDIMScheduler"}, {"beta_end", 2}}), "a beta is not between 0 and 1");
  EXPECT_PRED2(contains, wrong({{"_class_name", "PNDMScheduler"}}), "skip_prk_steps is not true");
  EXPECT_PRED2(contains, wrong({{"_class_name", "DPMSolverMultistepScheduler"}, {"lambda_min_clipped", -5.1}}),
               "lambda_min_clipped is -5.1");
  const TempDir folder;  // what Python's json writes
  spit(folder / "s.json", "{\"_class_name\": \"DPMSolverMultistepScheduler\", \"lambda_min_clipped\": -Infinity}");
  EXPECT_EQ(SchedulerConfig::from(ConfigFile(folder / "s.json", {})).solver, Solver::DpmSolver);
  const SchedulerConfig flow = config_of({{"_class_name", "FlowMatchEulerDiscreteScheduler"}});
  EXPECT_PRED2(contains, error_of([&] { flow.with("ddim"); }), "flow_euler alone is supported");
  EXPECT_EQ(sampling_plan(flow, {.steps = 3, .strength = 0.1}).steps.size(), 1u);  // rounded up, as diffusers does
  const SchedulerConfig ddim = config_of({{"_class_name", "DDIMScheduler"}});
  EXPECT_PRED2(contains, error_of([&] { sampling_plan(ddim, {.steps = 3, .strength = 0.1}); }),
               "leaves none of 3 steps");
}

}  // namespace
