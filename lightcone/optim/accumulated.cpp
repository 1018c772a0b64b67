// Rules that divide by the root of accumulated squared gradients: RMSprop, Adagrad, Adadelta.
#include "lightcone/optim/rules.h"

namespace lc::optim {
namespace {

Tensor average_of_squares(ParameterUpdate& s, const char* state, const Tensor& x, double decay) {
  const Tensor v = s.state(state);
  return s.keep(v, prim::add(scaled(v, decay), scaled(prim::mul(x, x), 1 - decay)));
}

}  // namespace

Rule rule(const RMSprop& o, const StepState& c) {
  not_negative(o.alpha, "RMSprop", "alpha");
  not_negative(o.eps, "RMSprop", "eps");
  not_negative(o.momentum, "RMSprop", "momentum");
  not_negative(o.weight_decay, "RMSprop", "weight_decay");
  return [o, lr = c.lr](ParameterUpdate& s) {
    const bool inside = o.convention == RMSprop::Convention::TensorFlow;
    s.apply_sign_and_decay(o.maximize, o.weight_decay);
    Tensor v = average_of_squares(s, "square_avg", s.g(), o.alpha);
    if (o.centered) {
      const Tensor a = s.state("grad_avg"), kept = s.keep(a, moved(a, s.g(), 1 - o.alpha));
      v = minus(v, prim::mul(kept, kept));
    }
    const Tensor root = inside ? prim::sqrt(plus(v, o.eps)) : plus(prim::sqrt(v), o.eps);
    Tensor d = prim::div(inside ? prim::mul(s.g(), s.spread(lr)) : s.g(), root);
    if (o.momentum != 0) {
      const Tensor b = s.state("momentum_buffer");
      d = s.keep(b, prim::add(scaled(b, o.momentum), d));
    }
    return minus(s.p(), inside ? d : prim::mul(d, s.spread(lr)));
  };
}

Rule rule(const Adagrad& o, const StepState& c) {
  not_negative(o.lr_decay, "Adagrad", "lr_decay");
  not_negative(o.eps, "Adagrad", "eps");
  not_negative(o.weight_decay, "Adagrad", "weight_decay");
  not_negative(o.initial_accumulator_value, "Adagrad", "initial_accumulator_value");
  const Tensor lr = prim::div(c.lr, plus(scaled(plus(c.t, -1), o.lr_decay), 1));
  return [=](ParameterUpdate& s) {
    s.apply_sign_and_decay(o.maximize, o.weight_decay);
    const Tensor sum = s.state("sum");
    const double begin = o.initial_accumulator_value;
    const Tensor before = begin == 0 ? sum : prim::where(s.spread(s.step().first), full_like(sum, begin), sum);
    const Tensor kept = s.keep(sum, prim::add(before, prim::mul(s.g(), s.g())));
    return minus(s.p(), prim::div(prim::mul(s.g(), s.spread(lr)), plus(prim::sqrt(kept), o.eps)));
  };
}

Rule rule(const Adadelta& o, const StepState& c) {
  if (!(o.rho >= 0 && o.rho <= 1)) throw Error("Adadelta", str_cat("rho is ", o.rho, "; it lies between 0 and 1"));
  not_negative(o.eps, "Adadelta", "eps");
  not_negative(o.weight_decay, "Adadelta", "weight_decay");
  return [o, lr = c.lr](ParameterUpdate& s) {
    s.apply_sign_and_decay(o.maximize, o.weight_decay);
    const Tensor v = average_of_squares(s, "square_avg", s.g(), o.rho), u = s.state("acc_delta");
    const Tensor ratio = prim::div(prim::sqrt(plus(u, o.eps)), prim::sqrt(plus(v, o.eps)));
    const Tensor d = prim::mul(ratio, s.g());
    s.keep(u, prim::add(scaled(u, o.rho), scaled(prim::mul(d, d), 1 - o.rho)));
    return minus(s.p(), prim::mul(d, s.spread(lr)));
  };
}

}  // namespace lc::optim
