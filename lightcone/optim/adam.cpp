// Rules of Adam and its variants: two moments of the gradient, corrected for their initial zeros.
#include <cmath>

#include "lightcone/optim/rules.h"

namespace lc::optim {
namespace {

template <class O>
void check_betas(const O& o, const char* op) {
  below_one(o.beta1, op, "beta1");
  below_one(o.beta2, op, "beta2");
  not_negative(o.weight_decay, op, "weight_decay");
  if constexpr (requires { o.eps; }) not_negative(o.eps, op, "eps");
}

struct Moments {
  Tensor first, second;
};
Moments moments(ParameterUpdate& s, double beta1, double beta2) {
  const Tensor m = s.state("exp_avg"), v = s.state("exp_avg_sq");
  const Tensor square = prim::mul(s.g(), s.g());
  return {s.keep(m, moved(m, s.g(), 1 - beta1)), s.keep(v, prim::add(scaled(v, beta2), scaled(square, 1 - beta2)))};
}

template <class O>
Rule adam(const O& o, const StepState& c, const char* op, bool decoupled) {
  check_betas(o, op);
  const Tensor size = prim::div(c.lr, c.bias(o.beta1)), root = prim::recip(prim::sqrt(c.bias(o.beta2)));
  return [=](ParameterUpdate& s) {
    if (decoupled) s.decay_parameter(o.weight_decay);
    s.apply_sign_and_decay(o.maximize, decoupled ? 0 : o.weight_decay);
    auto [m, v] = moments(s, o.beta1, o.beta2);
    if (o.amsgrad) {
      const Tensor most = s.state("max_exp_avg_sq");
      v = s.keep(most, prim::maximum(most, v));
    }
    const Tensor divisor = plus(prim::mul(prim::sqrt(v), s.spread(root)), o.eps);
    return minus(s.p(), prim::div(prim::mul(m, s.spread(size)), divisor));
  };
}

}  // namespace

Rule rule(const Adam& o, const StepState& c) { return adam(o, c, "Adam", false); }
Rule rule(const AdamW& o, const StepState& c) { return adam(o, c, "AdamW", true); }

Rule rule(const NAdam& o, const StepState& c) {
  check_betas(o, "NAdam");
  not_negative(o.momentum_decay, "NAdam", "momentum_decay");
  // momentum warm-up in step t: beta1 (1 - 0.96^(t momentum_decay) / 2)
  const auto momentum = [&](const Tensor& t) {
    const Tensor warm = prim::pow(c.number(0.96), scaled(t, o.momentum_decay));
    return scaled(plus(scaled(warm, -0.5), 1), o.beta1);
  };
  const Tensor one = c.number(1), mu = momentum(c.t), after = momentum(plus(c.t, 1));
  const Tensor state = c.zero_state(c.name + ".mu_product", {}, DType::F64);  // product of all momenta so far
  const Tensor product = assign_when(c.when, state, prim::mul(prim::where(c.first, one, state), mu));
  const Tensor of_gradient = prim::div(prim::mul(c.lr, minus(one, mu)), minus(one, product));
  const Tensor of_moment = prim::div(prim::mul(c.lr, after), minus(one, prim::mul(product, after)));
  const Tensor root = prim::recip(prim::sqrt(c.bias(o.beta2)));
  return [=](ParameterUpdate& s) {
    if (o.decoupled_weight_decay) s.decay_parameter(o.weight_decay);
    s.apply_sign_and_decay(o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
    const auto [m, v] = moments(s, o.beta1, o.beta2);
    const Tensor along = prim::add(prim::mul(s.g(), s.spread(of_gradient)), prim::mul(m, s.spread(of_moment)));
    return minus(s.p(), prim::div(along, plus(prim::mul(prim::sqrt(v), s.spread(root)), o.eps)));
  };
}

Rule rule(const RAdam& o, const StepState& c) {
  check_betas(o, "RAdam");
  const double most = 2 / (1 - o.beta2) - 1;  // the limit of the average's length
  const Tensor power = c.power(o.beta2), bias = minus(c.number(1), power);
  const Tensor length = minus(c.number(most), prim::div(scaled(prim::mul(c.t, power), 2), bias));
  const Tensor rectified = prim::sqrt(
      prim::div(scaled(prim::mul(plus(length, -4), plus(length, -2)), most), scaled(length, (most - 4) * (most - 2))));
  const Tensor trusted = prim::less_than(c.number(5), length);
  const Tensor size = prim::div(c.lr, c.bias(o.beta1));
  const Tensor adaptive = prim::mul(size, prim::mul(rectified, prim::sqrt(bias)));
  return [=](ParameterUpdate& s) {
    if (o.decoupled_weight_decay) s.decay_parameter(o.weight_decay);
    s.apply_sign_and_decay(o.maximize, o.decoupled_weight_decay ? 0 : o.weight_decay);
    const auto [m, v] = moments(s, o.beta1, o.beta2);
    const Tensor scale =
        prim::where(s.spread(trusted), prim::div(s.spread(adaptive), plus(prim::sqrt(v), o.eps)), s.spread(size));
    return minus(s.p(), prim::mul(m, scale));
  };
}

Rule rule(const LAMB& o, const StepState& c) {
  check_betas(o, "LAMB");
  const Tensor one = prim::recip(c.bias(o.beta1)), root = prim::recip(prim::sqrt(c.bias(o.beta2)));
  return [=](ParameterUpdate& s) {
    s.apply_sign_and_decay(o.maximize, 0);
    const auto [m, v] = moments(s, o.beta1, o.beta2);
    const Tensor divisor = plus(prim::mul(prim::sqrt(v), s.spread(root)), o.eps);
    const Tensor u = prim::add(prim::div(prim::mul(m, s.spread(one)), divisor), scaled(s.p(), o.weight_decay));
    const Tensor length = norm(s.p()), stride = norm(u), zero = full_like(length, 0);
    const Tensor none = logical_or(prim::equal(length, zero), prim::equal(stride, zero));
    const Tensor trust = prim::where(none, full_like(length, 1), prim::div(length, stride));
    const Tensor size = prim::mul(prim::cast(s.step().lr, u.dtype()), trust);
    return minus(s.p(), prim::mul(u, broadcast_to(size, u.shape())));
  };
}

}  // namespace lc::optim
