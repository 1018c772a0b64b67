#include "lightcone/models/diffusion/sampling/sampling_plan.h"

#include <algorithm>
#include <cmath>

#include "lightcone/base/error.h"

namespace lc::diffusion {
namespace {

// ---- timesteps -----------------------------------------------------------------------------------------

std::vector<double> evenly(double from, double to, std::size_t n) {
  std::vector<double> all;
  for (std::size_t k = 0; k < n; ++k)
    all.push_back(n == 1 ? from : from + (to - from) * static_cast<double>(k) / static_cast<double>(n - 1));
  return all;
}

// numpy's round: ties to even.
double rounded(double x) { return std::nearbyint(x); }

// The timesteps in falling order. Solvers of several steps leave one more room (`spare`), and Euler's family keeps
// fractions.
std::vector<double> timesteps_of(const SchedulerConfig& c, std::size_t n, bool spare, bool whole) {
  const auto train = static_cast<double>(c.train_steps), steps = static_cast<double>(n);
  std::vector<double> t;
  if (c.spacing == Spacing::Linspace) {
    t = evenly(0, train - 1, n + (spare ? 1 : 0));
    if (whole)
      for (double& x : t) x = rounded(x);
    if (spare) t.erase(t.begin());
    std::ranges::reverse(t);
  } else if (c.spacing == Spacing::Leading) {
    const double ratio = std::floor(train / (steps + (spare ? 1 : 0)));
    for (std::size_t k = n; k-- > 0;)
      t.push_back(static_cast<double>(k + (spare ? 1 : 0)) * ratio + static_cast<double>(c.steps_offset));
  } else {
    for (std::size_t k = 0; k < n; ++k) t.push_back(rounded(train - static_cast<double>(k) * (train / steps)) - 1);
  }
  for (double& x : t) x = std::clamp(x, 0.0, train - 1);
  return t;
}

// ---- noise levels ----------------------------------------------------------------------------------------

std::vector<double> sigmas_of(const std::vector<double>& alphas) {
  std::vector<double> s;
  for (const double a : alphas) s.push_back(std::sqrt((1 - a) / a));
  return s;
}
double between(const std::vector<double>& table, double at) {
  const double low = std::clamp(std::floor(at), 0.0, static_cast<double>(table.size()) - 1);
  const auto k = static_cast<std::size_t>(low);
  if (k + 1 == table.size()) return table.back();
  return table[k] + (table[k + 1] - table[k]) * (at - low);
}

// The timestep, with its fraction, at which the training's noise level is sigma.
double timestep_at(const std::vector<double>& log_sigmas, double sigma) {
  const double s = std::log(std::max(sigma, 1e-10));
  const auto above = std::ranges::upper_bound(log_sigmas, s);
  const std::ptrdiff_t most = std::ssize(log_sigmas) - 2;
  const auto low = static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(above - log_sigmas.begin() - 1, 0, std::max<std::ptrdiff_t>(most, 0)));
  if (low + 1 >= log_sigmas.size()) return static_cast<double>(low);
  const double w = (log_sigmas[low] - s) / (log_sigmas[low] - log_sigmas[low + 1]);
  return static_cast<double>(low) + std::clamp(w, 0.0, 1.0);
}

std::vector<double> karras(double most, double least, std::size_t n) {
  constexpr double kRho = 7;
  std::vector<double> all = evenly(std::pow(most, 1 / kRho), std::pow(least, 1 / kRho), n);
  for (double& s : all) s = std::pow(s, kRho);
  return all;
}
std::vector<double> exponential(double most, double least, std::size_t n) {
  std::vector<double> all = evenly(std::log(most), std::log(least), n);
  for (double& s : all) s = std::exp(s);
  return all;
}

NoiseLevel variance_exploding(double sigma) { return {1, sigma}; }
NoiseLevel variance_preserving(double sigma) { return {1 / std::hypot(sigma, 1.0), sigma / std::hypot(sigma, 1.0)}; }
NoiseLevel of_alpha(double a) { return {std::sqrt(a), std::sqrt(1 - a)}; }

// The timesteps and sigmas of the methods that go by sigmas.
Levels levels_by_sigmas(const SchedulerConfig& c, std::size_t n, const std::vector<double>& alphas) {
  const bool multistep = c.solver == Solver::DpmSolver || c.solver == Solver::UniPC;
  const std::vector<double> all = sigmas_of(alphas);
  std::vector<double> t = timesteps_of(c, n, multistep, multistep), sigmas;
  for (const double x : t) sigmas.push_back(between(all, x));
  if (c.sigmas != Sigmas::OfTimesteps) {
    // DPM-Solver and UniPC take the schedule's ends, Euler and Heun those of their timesteps
    double most = multistep ? all.back() : sigmas.front(), least = multistep ? all.front() : sigmas.back();
    if (c.sigma_max > 0) most = c.sigma_max;
    if (c.sigma_min > 0) least = c.sigma_min;
    sigmas = c.sigmas == Sigmas::Karras ? karras(most, least, n) : exponential(most, least, n);
    std::vector<double> logs;
    for (const double s : all) logs.push_back(std::log(s));
    const bool rounds = multistep && (c.solver == Solver::UniPC || c.beta_schedule != "squaredcos_cap_v2");
    for (std::size_t k = 0; k < n; ++k) {
      t[k] = timestep_at(logs, sigmas[k]);
      if (multistep) t[k] = c.sigmas == Sigmas::Karras && rounds ? rounded(t[k]) : std::trunc(t[k]);
    }
  }
  const bool karras_last = c.solver == Solver::UniPC && c.sigmas != Sigmas::OfTimesteps;
  sigmas.push_back(c.last_sigma_is_zero ? 0 : karras_last ? sigmas.back() : all.front());
  Levels l;
  l.timesteps = t;
  for (const double s : sigmas) l.levels.push_back(multistep ? variance_preserving(s) : variance_exploding(s));
  return l;
}

// ---- methods that go by timesteps --------------------------------------------------------------------------

// The level `ratio` timesteps before t; past the first one, the clean sample or what the file says.
NoiseLevel level_before(const SchedulerConfig& c, const std::vector<double>& alphas, double t, double ratio) {
  const double before = t - ratio;
  if (before >= 0) return of_alpha(alphas[static_cast<std::size_t>(before)]);
  return c.last_alpha_is_one ? NoiseLevel{1, 0} : of_alpha(alphas.front());
}
const double& alpha_at(const std::vector<double>& alphas, double t) { return alphas[static_cast<std::size_t>(t)]; }

SamplingStep ddpm_step(const SchedulerConfig& c, double timestep, double now, double before) {
  SamplingStep s = ddim_step(c, timestep, of_alpha(now), of_alpha(before), 0);
  const double alpha = now / before, beta = 1 - alpha;
  auto& row = s.update[0];
  row = {};
  row[kClean] = std::sqrt(before) * beta / (1 - now);
  row[kSample] = std::sqrt(alpha) * (1 - before) / (1 - now);
  row[kNoise] = timestep > 0 ? std::sqrt(std::max((1 - before) / (1 - now) * beta, 1e-20)) : 0;
  return s;
}

SamplingPlan plan_ddpm(const SchedulerConfig& c, std::size_t n, std::size_t begin, const std::vector<double>& alphas) {
  const std::vector<double> t = timesteps_of(c, n, false, true);
  SamplingPlan p;
  for (std::size_t i = begin; i < n; ++i)
    p.steps.push_back(ddpm_step(c, t[i], alpha_at(alphas, t[i]), i + 1 < n ? alpha_at(alphas, t[i + 1]) : 1));
  return p;
}

SamplingPlan plan_ddim(const SchedulerConfig& c, std::size_t n, std::size_t begin, double eta,
                       const std::vector<double>& alphas) {
  const std::vector<double> t = timesteps_of(c, n, false, true);
  const double ratio = std::floor(static_cast<double>(c.train_steps) / static_cast<double>(n));
  SamplingPlan p;
  for (std::size_t i = begin; i < n; ++i)
    p.steps.push_back(ddim_step(c, t[i], of_alpha(alpha_at(alphas, t[i])), level_before(c, alphas, t[i], ratio), eta));
  return p;
}

// One step of PNDM's transfer from t to `before`, of a mean of outputs with these weights: the output, memories 0 to 2.
// `base` is the column of the sample that is moved.
SamplingStep pndm_step(const SchedulerConfig& c, double timestep, const NoiseLevel& from, const NoiseLevel& to,
                       const std::array<double, 4>& weights, std::size_t base) {
  SamplingStep s;
  s.timestep = timestep, s.level = from;
  const double ap = to.alpha * to.alpha, a = from.alpha * from.alpha;
  const double divisor = a * to.sigma + std::sqrt(a * (1 - a) * ap);
  double sample = std::sqrt(ap / a), output = -(ap - a) / divisor;
  // a velocity is first made noise: alpha v + sigma sample
  if (c.prediction == Prediction::Velocity) sample += output * from.sigma, output *= from.alpha;
  auto& row = s.update[0];
  row[base] += sample;
  row[kOutput] += output * weights[0];
  for (std::size_t m = 0; m < 3; ++m) row[kMemory + m] += output * weights[m + 1];
  return s;
}

SamplingPlan plan_pndm(const SchedulerConfig& c, std::size_t n, std::size_t begin, const std::vector<double>& alphas) {
  std::vector<double> t = timesteps_of(c, n, false, true);
  if (n > 1) t.insert(t.begin() + 1, t[1]);  // the second timestep comes twice
  const double ratio = std::floor(static_cast<double>(c.train_steps) / static_cast<double>(n));
  SamplingPlan p;
  for (std::size_t i = begin; i < t.size(); ++i) {
    const std::size_t count = i - begin;  // steps so far
    const bool repeats = count == 1;
    const double from = repeats ? t[i] + ratio : t[i];
    const NoiseLevel at = of_alpha(alpha_at(alphas, std::min(from, static_cast<double>(c.train_steps) - 1)));
    const NoiseLevel to = level_before(c, alphas, from, ratio);
    std::array<double, 4> w{1, 0, 0, 0};
    if (repeats) w = {0.5, 0.5, 0, 0};
    else if (count == 2) w = {1.5, -0.5, 0, 0};
    else if (count == 3) w = {23.0 / 12, -16.0 / 12, 5.0 / 12, 0};
    else if (count > 3) w = {55.0 / 24, -59.0 / 24, 37.0 / 24, -9.0 / 24};
    SamplingStep s = pndm_step(c, t[i], at, to, w, repeats ? kMemory + 3 : kSample);
    s.level = of_alpha(alpha_at(alphas, t[i]));
    if (repeats) {
      for (std::size_t m = 0; m < kMemories; ++m) s.update[1 + m][kMemory + m] = 1;
    } else {
      s.update[1][kOutput] = 1;
      for (std::size_t m = 1; m < 3; ++m) s.update[1 + m][kMemory + m - 1] = 1;
      s.update[4][kSample] = 1;
    }
    p.steps.push_back(s);
  }
  return p;
}

// ---- flow matching -----------------------------------------------------------------------------------------

Levels flow_levels(const SchedulerConfig& c, std::size_t n, const SamplingOptions& o) {
  const auto train = static_cast<double>(c.train_steps);
  const auto shifted = [&](double s) { return c.shift * s / (1 + (c.shift - 1) * s); };
  // Without levels from its pipeline, diffusers takes them between the ends of the training, which have their shift
  // already, and shifts all of them once more.
  const bool ends_shifted = !c.dynamic_shift;
  std::vector<double> sigmas = o.evenly       ? evenly(1, 1 / static_cast<double>(n), n)
                               : ends_shifted ? evenly(shifted(1), shifted(1 / train), n)
                                              : evenly(1, 1 / train, n);
  if (c.dynamic_shift) {
    const double slope = (c.max_shift - c.base_shift) / static_cast<double>(c.max_length - c.base_length);
    const double mu = slope * static_cast<double>(o.length - c.base_length) + c.base_shift;
    const double by = c.linear_shift ? mu : std::exp(mu);
    for (double& s : sigmas) s = by / (by + (1 / s - 1));
  } else {
    for (double& s : sigmas) s = shifted(s);
  }
  if (c.last_level > 0) {  // stretched so that the last level is this one
    const double stretch = (1 - sigmas.back()) / (1 - c.last_level);
    for (double& s : sigmas) s = 1 - (1 - s) / stretch;
  }
  Levels l;
  for (const double s : sigmas) l.timesteps.push_back(s * train), l.levels.push_back({1 - s, s});
  l.levels.push_back({1, 0});
  return l;
}

}  // namespace

SamplingPlan sampling_plan(const SchedulerConfig& c, const SamplingOptions& o) {
  if (o.steps < 1 || o.steps > c.train_steps)
    throw Error("sampling_plan", str_cat(o.steps, " steps, and not 1 to the ", c.train_steps, " of the training"));
  if (!(o.strength > 0) || !(o.strength <= 1))
    throw Error("sampling_plan", str_cat("a strength of ", o.strength, ", and not above 0 and at most 1"));
  const auto n = static_cast<std::size_t>(o.steps);
  // diffusers rounds the number of steps down, and in flow matching the number of those that are left out.
  const double part = static_cast<double>(n) * o.strength;
  const auto kept = std::min(n, static_cast<std::size_t>(c.solver == Solver::FlowEuler ? std::ceil(part) : part));
  if (kept == 0)
    throw Error("sampling_plan",
                str_cat("a strength of ", o.strength, " leaves none of ", n, " steps; take more steps"));
  const std::size_t begin = n - kept;
  if (c.solver == Solver::FlowEuler) return plan_euler(c, flow_levels(c, n, o), begin);
  const std::vector<double> alphas = alphas_cumprod(c);
  if (c.solver == Solver::Ddpm) return plan_ddpm(c, n, begin, alphas);
  if (c.solver == Solver::Ddim) return plan_ddim(c, n, begin, o.eta, alphas);
  if (c.solver == Solver::Pndm) return plan_pndm(c, n, begin, alphas);
  const Levels l = levels_by_sigmas(c, n, alphas);
  if (c.solver == Solver::DpmSolver) return plan_dpm_solver(c, l, begin);
  if (c.solver == Solver::UniPC) return plan_unipc(c, l, begin);
  SamplingPlan p = c.solver == Solver::Heun ? plan_heun(c, l, begin) : plan_euler(c, l, begin);
  double most = 0;
  for (const NoiseLevel& level : l.levels) most = std::max(most, level.sigma);
  p.first_scale = c.spacing == Spacing::Leading ? std::hypot(most, 1.0) : most;
  return p;
}

}  // namespace lc::diffusion
