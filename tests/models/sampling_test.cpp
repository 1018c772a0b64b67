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
    const SamplingPlan p = sampling_plan(config, {.steps = c["steps"], .eta = c["eta"]});
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

}  // namespace
