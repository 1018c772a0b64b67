// Rules of gradient descent with momentum: SGD, Lion, Muon.
#include <algorithm>
#include <cmath>

#include "lightcone/optim/rules.h"

namespace lc::optim {

Rule rule(const SGD& o, const StepState& c) {
  not_negative(o.momentum, "SGD", "momentum");
  not_negative(o.weight_decay, "SGD", "weight_decay");
  if (!std::isfinite(o.dampening)) throw Error("SGD", str_cat("dampening is ", o.dampening));
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    throw Error("SGD", str_cat("nesterov needs a momentum and no dampening, not ", o.momentum, " and ", o.dampening));
  return [o, lr = c.lr](ParameterUpdate& s) {
    s.apply_sign_and_decay(o.maximize, o.weight_decay);
    Tensor d = s.g();
    if (o.momentum != 0) {
      const Tensor b = s.state("momentum_buffer");
      Tensor next = prim::add(scaled(b, o.momentum), scaled(d, 1 - o.dampening));
      if (o.dampening != 0) next = prim::where(s.spread(s.step().first), d, next);
      const Tensor kept = s.keep(b, next);
      d = o.nesterov ? prim::add(d, scaled(kept, o.momentum)) : kept;
    }
    return minus(s.p(), prim::mul(d, s.spread(lr)));
  };
}

Rule rule(const Lion& o, const StepState& c) {
  below_one(o.beta1, "Lion", "beta1");
  below_one(o.beta2, "Lion", "beta2");
  not_negative(o.weight_decay, "Lion", "weight_decay");
  return [o, lr = c.lr](ParameterUpdate& s) {
    s.apply_sign_and_decay(o.maximize, 0);
    s.decay_parameter(o.weight_decay);
    const Tensor m = s.state("exp_avg");
    // the two averages share no subexpression, so none has to be stored
    const auto average = [m, g = s.g()](double beta) { return prim::add(scaled(m, beta), scaled(g, 1 - beta)); };
    s.assign_after(m, [=] { return average(o.beta2); });
    return minus(s.p(), prim::mul(sign(average(o.beta1)), s.spread(lr)));
  };
}

namespace {

// Approximates the orthogonal matrix nearest to x [rows, columns] by Newton-Schulz iteration, which drives all singular
// values towards 1. It works on the wide one of x and its transpose.
Tensor orthogonal(Tensor x, bool tall, const Muon& o) {
  const auto [a, b, c] = o.ns_coefficients;
  const Tensor length = norm(x);
  x = prim::div(x, broadcast_to(prim::maximum(length, full_like(length, o.eps)), x.shape()));
  if (tall) x = x.transpose(0, 1);
  for (int k = 0; k < o.ns_steps; ++k) {
    const Tensor gram = matmul(x, x.transpose(0, 1));
    const Tensor step = prim::add(scaled(gram, b), scaled(matmul(gram, gram), c));
    x = prim::add(scaled(x, a), matmul(step, x));
  }
  return tall ? x.transpose(0, 1) : x;
}

}  // namespace

Rule rule(const Muon& o, const StepState& c) {
  not_negative(o.weight_decay, "Muon", "weight_decay");
  not_negative(o.eps, "Muon", "eps");
  below_one(o.momentum, "Muon", "momentum");
  if (o.ns_steps < 0 || o.ns_steps >= 100)
    throw Error("Muon", str_cat("ns_steps is ", o.ns_steps, "; it lies between 0 and 99"));
  return [o, lr = c.lr](ParameterUpdate& s) {
    const Shape shape = s.p().shape();
    const auto rows = shape.size() == 2 ? shape[0].constant() : std::nullopt;
    const auto columns = shape.size() == 2 ? shape[1].constant() : std::nullopt;
    if (!rows || !columns || *rows < 1 || *columns < 1)
      throw Error("Muon", str_cat("is for matrices of known sizes, not for '", s.name(), "' ", str(shape),
                                  "; give other parameters to AdamW"));
    s.decay_parameter(o.weight_decay);
    const Tensor b = s.state("momentum_buffer"), kept = s.keep(b, moved(b, s.g(), 1 - o.momentum));
    const Tensor u = o.nesterov ? moved(s.g(), kept, o.momentum) : kept;
    const double r = static_cast<double>(*rows), n = static_cast<double>(*columns);
    const double ratio =
        o.adjust_lr_fn == Muon::AdjustLr::Original ? std::sqrt(std::max(1.0, r / n)) : 0.2 * std::sqrt(std::max(r, n));
    return minus(s.p(), prim::mul(orthogonal(u, r > n, o), s.spread(scaled(lr, ratio))));
  };
}

}  // namespace lc::optim
