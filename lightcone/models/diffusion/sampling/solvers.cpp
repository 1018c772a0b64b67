// The methods as weights of sums. Names of quantities are those of the papers: lambda is the logarithm of alpha /
// sigma, h a step of it; D0, D1, D2 are differences of predicted samples.
#include <cmath>
#include <limits>

#include "lightcone/base/error.h"
#include "lightcone/models/diffusion/sampling/sampling_plan.h"

namespace lc::diffusion {
namespace {

double lambda_of(const NoiseLevel& l) {
  return l.sigma > 0 ? std::log(l.alpha) - std::log(l.sigma) : std::numeric_limits<double>::infinity();
}

// A step with what all methods have: the timestep and how x0 follows from the model's output.
SamplingStep begin_step(const SchedulerConfig& c, double timestep, const NoiseLevel& at) {
  SamplingStep s;
  s.timestep = timestep, s.level = at, s.limit = c.clip;
  const double total = std::hypot(at.alpha, at.sigma);  // 1, but for samples whose alpha is 1
  switch (c.prediction) {
    case Prediction::Noise: s.from_sample = 1 / at.alpha, s.from_output = -at.sigma / at.alpha; break;
    case Prediction::Velocity:  // meant for the sample divided by `total`
      s.from_sample = at.alpha / (total * total), s.from_output = -at.sigma / total;
      break;
    case Prediction::Sample: s.from_sample = 0, s.from_output = 1; break;
    case Prediction::Flow: s.from_sample = 1, s.from_output = -at.sigma; break;
  }
  return s;
}

// The rows of memories that keep what they have, moved by one place: memory 0 becomes `column`.
void remember(SamplingStep& s, std::size_t column, std::size_t count) {
  s.update[1][column] = 1;
  for (std::size_t m = 1; m < count; ++m) s.update[1 + m][kMemory + m - 1] = 1;
}

// ---- DPM-Solver++ ------------------------------------------------------------------------------------

// Adds weight times D0 = m0, D1 and D2 to a row, where m0 is in column `now` and m1, m2 in memories 0 and 1.
struct Differences {
  double r0 = 1, r1 = 1;
  std::size_t order = 1;
  void add(std::array<double, kColumns>& row, double d0, double d1, double d2) const {
    row[kClean] += d0;
    if (order == 2) row[kClean] += d1 / r0, row[kMemory] -= d1 / r0;
    if (order < 3) return;
    // D1_0 = (m0 - m1) / r0, D1_1 = (m1 - m2) / r1; D1 = D1_0 + r0 (D1_0 - D1_1) / (r0 + r1), D2 the difference
    // divided by r0 + r1
    const double a = d1 * (1 + r0 / (r0 + r1)) + d2 / (r0 + r1), b = -d1 * r0 / (r0 + r1) - d2 / (r0 + r1);
    row[kClean] += a / r0, row[kMemory] += -a / r0 + b / r1, row[kMemory + 1] -= b / r1;
  }
};

}  // namespace

SamplingPlan plan_dpm_solver(const SchedulerConfig& c, const Levels& l, std::size_t begin) {
  SamplingPlan p;
  const std::size_t n = l.timesteps.size();
  const auto order = static_cast<std::size_t>(c.order);
  for (std::size_t i = begin; i < n; ++i) {
    SamplingStep s = begin_step(c, l.timesteps[i], l.levels[i]);
    const NoiseLevel &s0 = l.levels[i], &t = l.levels[i + 1];
    const double h = lambda_of(t) - lambda_of(s0);
    const bool few = c.lower_order_final && n < 15;
    const bool last = i + 1 == n && (c.euler_at_final || few || c.last_sigma_is_zero), second = i + 2 == n && few;
    const std::size_t past = i - begin;
    Differences d;
    d.order = order == 1 || past < 1 || last ? 1 : order == 2 || past < 2 || second ? 2 : 3;
    if (d.order >= 2) d.r0 = (lambda_of(s0) - lambda_of(l.levels[i - 1])) / h;
    if (d.order >= 3) d.r1 = (lambda_of(l.levels[i - 1]) - lambda_of(l.levels[i - 2])) / h;
    auto& row = s.update[0];
    if (c.stochastic) {
      const double e = -std::expm1(-2 * h);
      row[kSample] = t.sigma / s0.sigma * std::exp(-h);
      const double d1 = c.heun_form ? t.alpha * (e / (-2 * h) + 1) : 0.5 * t.alpha * e;
      d.add(row, t.alpha * e, d.order > 1 ? d1 : 0, 0);
      row[kNoise] = t.sigma * std::sqrt(e);
    } else {
      const double e = std::expm1(-h);
      row[kSample] = t.sigma / s0.sigma;
      const double d1 = c.heun_form || d.order == 3 ? t.alpha * (e / h + 1) : -0.5 * t.alpha * e;
      const double d2 = -t.alpha * ((e + h) / (h * h) - 0.5);
      d.add(row, -t.alpha * e, d.order > 1 ? d1 : 0, d.order > 2 ? d2 : 0);
    }
    remember(s, kClean, 2);
    p.steps.push_back(s);
  }
  return p;
}

// ---- UniPC -------------------------------------------------------------------------------------------

namespace {

// The coefficients that the predictor and the corrector of UniPC share, for a step from level s0 to t.
struct UniPCTerms {
  double phi1, b_h;         // e^hh - 1 and B(h)
  std::vector<double> rks;  // (lambda_si - lambda_s0) / h, and 1
  std::vector<double> b;
};
UniPCTerms unipc_terms(const SchedulerConfig& c, const Levels& l, std::size_t s0, std::size_t t, std::size_t order) {
  UniPCTerms u;
  const double h = lambda_of(l.levels[t]) - lambda_of(l.levels[s0]), hh = -h;
  for (std::size_t k = 1; k < order; ++k) u.rks.push_back((lambda_of(l.levels[s0 - k]) - lambda_of(l.levels[s0])) / h);
  u.rks.push_back(1);
  u.phi1 = std::expm1(hh);
  u.b_h = c.bh1 ? hh : u.phi1;
  double phi = u.phi1 / hh - 1, factorial = 1;
  for (std::size_t k = 1; k <= order; ++k) {
    u.b.push_back(phi * factorial / u.b_h);
    factorial *= static_cast<double>(k + 1);
    phi = phi / hh - 1 / factorial;
  }
  return u;
}

// Solves sum over j of rks[j]^i x[j] = b[i] for the first n of each.
std::vector<double> solved(const std::vector<double>& rks, const std::vector<double>& b, std::size_t n) {
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) a[i][j] = std::pow(rks[j], static_cast<double>(i));
    a[i][n] = b[i];
  }
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t best = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::fabs(a[i][k]) > std::fabs(a[best][k])) best = i;
    std::swap(a[k], a[best]);
    for (std::size_t i = 0; i < n; ++i)
      if (i != k)
        for (std::size_t j = n + 1; j-- > k;) a[i][j] -= a[k][j] * a[i][k] / a[k][k];
  }
  std::vector<double> x(n);
  for (std::size_t k = 0; k < n; ++k) x[k] = a[k][n] / a[k][k];
  return x;
}

constexpr std::size_t kLastSample = kMemory + 3;  // UniPC's memory of the sample before the last prediction

}  // namespace

SamplingPlan plan_unipc(const SchedulerConfig& c, const Levels& l, std::size_t begin) {
  SamplingPlan p;
  const std::size_t n = l.timesteps.size();
  const auto most = static_cast<std::size_t>(c.order);
  std::size_t order = 1;  // that the last step had
  for (std::size_t i = begin; i < n; ++i) {
    SamplingStep s = begin_step(c, l.timesteps[i], l.levels[i]);
    // The corrected sample in terms of the columns; memory 0, 1 and 2 are the predictions of the steps before.
    std::array<double, kColumns> corrected = {};
    if (i == begin) {
      corrected[kSample] = 1;
    } else {
      const NoiseLevel &from = l.levels[i - 1], &to = l.levels[i];
      const UniPCTerms u = unipc_terms(c, l, i - 1, i, order);
      const std::vector<double> rho = order == 1 ? std::vector<double>{0.5} : solved(u.rks, u.b, order);
      corrected[kLastSample] = to.sigma / from.sigma;
      corrected[kMemory] = -to.alpha * u.phi1;
      const double w = -to.alpha * u.b_h;
      for (std::size_t k = 0; k + 1 < order; ++k) {
        corrected[kMemory + 1 + k] += w * rho[k] / u.rks[k];
        corrected[kMemory] -= w * rho[k] / u.rks[k];
      }
      corrected[kClean] += w * rho.back(), corrected[kMemory] -= w * rho.back();
    }
    const std::size_t past = i - begin;
    order = std::min(c.lower_order_final ? std::min(most, n - i) : most, past + 1);
    const NoiseLevel &s0 = l.levels[i], &t = l.levels[i + 1];
    const UniPCTerms u = unipc_terms(c, l, i, i + 1, order);
    auto& row = s.update[0];
    for (std::size_t k = 0; k < kColumns; ++k) row[k] = t.sigma / s0.sigma * corrected[k];
    row[kClean] -= t.alpha * u.phi1;
    if (order > 1) {
      const std::vector<double> rho = order == 2 ? std::vector<double>{0.5} : solved(u.rks, u.b, order - 1);
      const double w = -t.alpha * u.b_h;
      for (std::size_t k = 0; k + 1 < order; ++k) {
        row[kMemory + k] += w * rho[k] / u.rks[k];
        row[kClean] -= w * rho[k] / u.rks[k];
      }
    }
    remember(s, kClean, 3);
    s.update[1 + kLastSample - kMemory] = corrected;
    p.steps.push_back(s);
  }
  return p;
}

// ---- DDIM, Euler, Heun -------------------------------------------------------------------------------

SamplingStep ddim_step(const SchedulerConfig& c, double timestep, const NoiseLevel& from, const NoiseLevel& to,
                       double eta) {
  SamplingStep s = begin_step(c, timestep, from);
  const double ratio = from.alpha / to.alpha;
  const double deviation =
      eta == 0 ? 0 : eta * std::sqrt(to.sigma * to.sigma / (from.sigma * from.sigma) * (1 - ratio * ratio));
  const double direction = std::sqrt(std::max(0.0, to.sigma * to.sigma - deviation * deviation));
  auto& row = s.update[0];
  row[kClean] = to.alpha, row[kNoise] = deviation;
  switch (c.prediction) {  // the noise in the sample, from what the model said and not from a clipped x0
    case Prediction::Noise: row[kOutput] = direction; break;
    case Prediction::Velocity: row[kOutput] = direction * from.alpha, row[kSample] = direction * from.sigma; break;
    case Prediction::Sample:
    case Prediction::Flow:
      row[kSample] = direction / from.sigma, row[kOutput] = -direction * from.alpha / from.sigma;
      break;
  }
  return s;
}

SamplingPlan plan_euler(const SchedulerConfig& c, const Levels& l, std::size_t begin) {
  SamplingPlan p;
  for (std::size_t i = begin; i < l.timesteps.size(); ++i) {
    const double from = l.levels[i].sigma, to = l.levels[i + 1].sigma;
    SamplingStep s = begin_step(c, l.timesteps[i], l.levels[i]);
    auto& row = s.update[0];
    if (c.solver == Solver::FlowEuler) {
      row[kSample] = 1, row[kOutput] = to - from;
    } else {
      s.input_scale = 1 / std::hypot(from, 1.0);
      const double up =
          c.solver == Solver::EulerAncestral ? std::sqrt(to * to * (from * from - to * to) / (from * from)) : 0;
      const double down = c.solver == Solver::EulerAncestral ? std::sqrt(to * to - up * up) : to;
      const double step = (down - from) / from;  // times (sample - x0)
      row[kSample] = 1 + step, row[kClean] = -step, row[kNoise] = up;
    }
    p.steps.push_back(s);
  }
  return p;
}

SamplingPlan plan_heun(const SchedulerConfig& c, const Levels& l, std::size_t begin) {
  SamplingPlan p;
  for (std::size_t i = begin; i < l.timesteps.size(); ++i) {
    const double from = l.levels[i].sigma, to = l.levels[i + 1].sigma, step = to - from;
    SamplingStep first = begin_step(c, l.timesteps[i], l.levels[i]);
    first.input_scale = 1 / std::hypot(from, 1.0);
    first.update[0][kSample] = 1 + step / from, first.update[0][kClean] = -step / from;
    first.update[1][kSample] = 1;                                              // the sample
    first.update[2][kSample] = 1 / from, first.update[2][kClean] = -1 / from;  // the derivative
    p.steps.push_back(first);
    if (i + 1 == l.timesteps.size()) break;  // the last step is Euler's, as its level is 0
    SamplingStep second = begin_step(c, l.timesteps[i + 1], l.levels[i + 1]);
    second.input_scale = 1 / std::hypot(to, 1.0);
    auto& row = second.update[0];
    row[kMemory] = 1, row[kMemory + 1] = step / 2;
    row[kSample] = step / 2 / to, row[kClean] = -step / 2 / to;
    p.steps.push_back(second);
  }
  return p;
}

}  // namespace lc::diffusion
