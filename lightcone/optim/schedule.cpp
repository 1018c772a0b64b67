#include "lightcone/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lightcone/optim/rules.h"

namespace lc::optim {
namespace {

void finite(double v, const char* op, const char* option) {
  if (!std::isfinite(v)) throw Error(op, str_cat(option, " is ", v, "; it must be finite"));
}
void at_least_one(std::int64_t v, const char* op, const char* option) {
  if (v < 1) throw Error(op, str_cat(option, " is ", v, "; it must be at least 1"));
}

Tensor real(const Tensor& t) { return prim::cast(t, DType::F64); }
Tensor real(const Tensor& t, double v) { return t.graph().constant(v, DType::F64); }
Tensor whole(const Tensor& t, std::int64_t v) { return t.graph().constant(v, DType::I64); }
Tensor before(const Tensor& t, std::int64_t v) { return prim::less_than(t, whole(t, v)); }
// Returns min(t, total) / total.
Tensor progress(const Tensor& t, std::int64_t total) {
  return scaled(real(prim::minimum(t, whole(t, total))), 1 / static_cast<double>(total));
}
// Interpolates from `top` to `bottom` along half a cosine as part goes from 0 to 1.
Tensor half_cosine(const Tensor& part, double top, double bottom) {
  return plus(scaled(plus(prim::cos(scaled(part, std::numbers::pi)), 1), (top - bottom) / 2), bottom);
}

}  // namespace

Tensor Schedule::operator()(Operand steps) const {
  const OpScope scope("schedule", steps.at);
  if (steps->dtype() != DType::I64 || steps->rank() != 0)
    throw Error("schedule", str_cat("steps are ", name(steps->dtype()), " ", str(steps->shape()),
                                    "; they must be i64 without axes, as counter() gives"));
  return formula_(steps);
}

Schedule constant(double lr) {
  not_negative(lr, "constant", "lr");
  return Schedule([=](const Tensor& t) { return real(t, lr); });
}
Schedule step_lr(double lr, std::int64_t step_size, double gamma) {
  not_negative(lr, "step_lr", "lr");
  not_negative(gamma, "step_lr", "gamma");
  at_least_one(step_size, "step_lr", "step_size");
  return Schedule(
      [=](const Tensor& t) { return scaled(prim::pow(real(t, gamma), real(prim::div(t, whole(t, step_size)))), lr); });
}
Schedule multi_step(double lr, std::vector<std::int64_t> milestones, double gamma) {
  not_negative(lr, "multi_step", "lr");
  not_negative(gamma, "multi_step", "gamma");
  std::sort(milestones.begin(), milestones.end());
  return Schedule([=](const Tensor& t) {
    Tensor rate = real(t, lr);
    double value = lr;
    for (const std::int64_t m : milestones) rate = prim::where(before(t, m), rate, real(t, value *= gamma));
    return rate;
  });
}
Schedule exponential(double lr, double gamma) {
  not_negative(lr, "exponential", "lr");
  not_negative(gamma, "exponential", "gamma");
  return Schedule([=](const Tensor& t) { return scaled(prim::pow(real(t, gamma), real(t)), lr); });
}
Schedule linear(double lr, double start_factor, double end_factor, std::int64_t total_iters) {
  not_negative(lr, "linear", "lr");
  not_negative(start_factor, "linear", "start_factor");
  not_negative(end_factor, "linear", "end_factor");
  at_least_one(total_iters, "linear", "total_iters");
  return Schedule([=](const Tensor& t) {
    return plus(scaled(progress(t, total_iters), lr * (end_factor - start_factor)), lr * start_factor);
  });
}
Schedule polynomial(double lr, std::int64_t total_iters, double power) {
  not_negative(lr, "polynomial", "lr");
  not_negative(power, "polynomial", "power");
  at_least_one(total_iters, "polynomial", "total_iters");
  return Schedule([=](const Tensor& t) {
    // the rest is counted in whole steps: 1 - 37 / 37 may be slightly negative, and its power NaN
    const Tensor left = real(minus(whole(t, total_iters), prim::minimum(t, whole(t, total_iters))));
    return scaled(prim::pow(scaled(left, 1 / static_cast<double>(total_iters)), real(t, power)), lr);
  });
}
Schedule cosine_annealing(double lr, std::int64_t t_max, double eta_min) {
  not_negative(lr, "cosine_annealing", "lr");
  finite(eta_min, "cosine_annealing", "eta_min");
  at_least_one(t_max, "cosine_annealing", "t_max");
  return Schedule([=](const Tensor& t) {
    // position within a period, which keeps the angle small
    const Tensor within = real(prim::mod(t, whole(t, 2 * t_max)));
    return half_cosine(scaled(within, 1 / static_cast<double>(t_max)), lr, eta_min);
  });
}
Schedule cosine_annealing_warm_restarts(double lr, std::int64_t t_0, std::int64_t t_mult, double eta_min) {
  const char* op = "cosine_annealing_warm_restarts";
  not_negative(lr, op, "lr");
  finite(eta_min, op, "eta_min");
  at_least_one(t_0, op, "t_0");
  at_least_one(t_mult, op, "t_mult");
  return Schedule([=](const Tensor& t) {
    if (t_mult == 1) {
      const Tensor part = scaled(real(prim::mod(t, whole(t, t_0))), 1 / static_cast<double>(t_0));
      return half_cosine(part, lr, eta_min);
    }
    // cycle lengths at least double, so 2^52 steps need few cycles
    constexpr std::int64_t kMost = std::int64_t{1} << 52;
    Tensor begin = real(t, 0), length = real(t, static_cast<double>(t_0));
    for (std::int64_t start = t_0, n = t_0; n <= kMost / t_mult && start < kMost;) {
      n *= t_mult;
      const Tensor earlier = before(t, start);
      begin = prim::where(earlier, begin, real(t, static_cast<double>(start)));
      length = prim::where(earlier, length, real(t, static_cast<double>(n)));
      start += n;
    }
    return half_cosine(prim::div(minus(real(t), begin), length), lr, eta_min);
  });
}

Schedule one_cycle(double max_lr, std::int64_t total_steps, const OneCycle& o) {
  const char* op = "one_cycle";
  not_negative(max_lr, op, "max_lr");
  at_least_one(total_steps, op, "total_steps");
  if (!(o.pct_start >= 0 && o.pct_start <= 1))
    throw Error(op, str_cat("pct_start is ", o.pct_start, "; it lies between 0 and 1"));
  for (const double v : {o.div_factor, o.final_div_factor})
    if (!(v > 0)) throw Error(op, str_cat("a rate is divided by ", v, "; div_factor and final_div_factor are above 0"));
  struct Phase {
    double end, from, to;
  };
  const double total = static_cast<double>(total_steps), first = max_lr / o.div_factor,
               last = first / o.final_div_factor;
  std::vector<Phase> phases{{o.pct_start * total - 1, first, max_lr}};
  if (o.three_phase) phases.push_back({2 * o.pct_start * total - 2, max_lr, first});
  phases.push_back({total - 1, phases.back().to, last});
  return Schedule([phases, strategy = o.anneal_strategy](const Tensor& t) {
    const Tensor steps = real(t);
    std::vector<Tensor> rates;
    for (std::size_t k = 0; k < phases.size(); ++k) {
      const auto [end, from, to] = phases[k];
      const double begin = k == 0 ? 0 : phases[k - 1].end, length = end - begin;
      // an empty phase is only evaluated at its end
      const Tensor part = length == 0 ? real(t, 1) : scaled(plus(steps, -begin), 1 / length);
      const Tensor p = k + 1 == phases.size() ? prim::minimum(part, real(t, 1)) : part;
      rates.push_back(strategy == Anneal::Cos ? half_cosine(p, from, to) : plus(scaled(p, to - from), from));
    }
    Tensor rate = rates.back();
    for (std::size_t k = phases.size() - 1; k-- > 0;)
      rate = prim::where(prim::less_than(real(t, phases[k].end), steps), rate, rates[k]);
    return rate;
  });
}

Schedule sequential(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones) {
  if (schedules.empty() || milestones.size() + 1 != schedules.size())
    throw Error("sequential",
                str_cat(schedules.size(), " schedules need one milestone between each two, not ", milestones.size()));
  if (std::adjacent_find(milestones.begin(), milestones.end(), std::greater_equal<>()) != milestones.end() ||
      (!milestones.empty() && milestones[0] < 0))
    throw Error("sequential", "milestones must rise, from 0");
  return Schedule([=](const Tensor& t) {
    Tensor rate = schedules[0](t);
    for (std::size_t k = 0; k < milestones.size(); ++k)
      rate = prim::where(before(t, milestones[k]), rate, schedules[k + 1](minus(t, whole(t, milestones[k]))));
    return rate;
  });
}
Schedule warm_up(const Schedule& then, std::int64_t steps, double start_factor) {
  const Schedule ramp = linear(1, start_factor, 1, std::max<std::int64_t>(steps, 1));
  if (steps < 0) throw Error("warm_up", str_cat("steps is ", steps, "; it must not be negative"));
  return Schedule([=](const Tensor& t) {
    const Tensor rising = prim::mul(then(whole(t, 0)), ramp(t));
    return prim::where(before(t, steps), rising, then(minus(t, whole(t, steps))));
  });
}

ReduceOnPlateau::ReduceOnPlateau(double lr, const Options& o) : o_(o), lr_(lr) {
  const char* op = "ReduceOnPlateau";
  not_negative(lr, op, "lr");
  if (!(o.factor > 0 && o.factor < 1)) throw Error(op, str_cat("factor is ", o.factor, "; it lies between 0 and 1"));
  if (o.patience < 0 || o.cooldown < 0)
    throw Error(op, str_cat("patience is ", o.patience, ", cooldown ", o.cooldown, "; neither may be negative"));
  not_negative(o.threshold, op, "threshold");
  not_negative(o.min_lr, op, "min_lr");
  not_negative(o.eps, op, "eps");
  best_ = o.mode == Mode::Min ? kInf : -kInf;
}

bool ReduceOnPlateau::improves(double metric) const {
  const double sign = o_.mode == Mode::Min ? -1 : 1;
  const double limit =
      o_.threshold_mode == Threshold::Rel ? best_ * (1 + sign * o_.threshold) : best_ + sign * o_.threshold;
  return o_.mode == Mode::Min ? metric < limit : metric > limit;
}

double ReduceOnPlateau::step(double metric) {
  if (improves(metric)) best_ = metric, bad_ = 0;
  else ++bad_;
  if (cooling_ > 0) --cooling_, bad_ = 0;
  if (bad_ > o_.patience) {
    const double lower = std::max(lr_ * o_.factor, o_.min_lr);
    if (lr_ - lower > o_.eps) lr_ = lower;
    cooling_ = o_.cooldown;
    bad_ = 0;
  }
  return lr_;
}

}  // namespace lc::optim
