// Losses for regression, distributions, pairs and triples.
#include "lightcone/ops/loss.h"

#include <cmath>
#include <numbers>

#include "lightcone/ops/loss/internal.h"

namespace lc {
namespace detail {

Tensor reduced(const Tensor& losses, Reduction reduction, const char* op) {
  switch (reduction) {
    case Reduction::None: return losses;
    case Reduction::Mean: return mean(losses);
    case Reduction::Sum: return sum(losses);
    case Reduction::BatchMean: break;
  }
  throw Error(op, "Reduction::BatchMean belongs to kl_div; use None, Mean or Sum");
}

void must_be_floating(const Operand& t, const char* op, const char* what) {
  if (!is_float(t->dtype()))
    throw Error(op, str_cat(what, " is ", name(t->dtype()), "; convert it to a floating type"));
}

void must_match(const Operand& input, const Operand& other, const char* op, const char* what) {
  if (input->shape() != other->shape())
    throw Error(op, str_cat("input ", str(input->shape()), " and ", what, " ", str(other->shape()),
                            " differ; nothing is broadcast"));
}

Pair compared(const Operand& input, const Operand& target, const char* op) {
  must_be_floating(input, op, "input");
  must_be_floating(target, op, "target");
  must_match(input, target, op, "target");
  return promoted(input, target, op);
}

void must_be_positive(double v, const char* op, const char* option) {
  if (!(v > 0)) throw Error(op, str_cat(option, " is ", v, "; it must be above 0"));
}

Tensor spread(const Tensor& option, const Tensor& t, const char* op, const char* what) {
  must_be_floating(option, op, what);
  if (broadcast(option.shape(), t.shape(), op) != t.shape())
    throw Error(op, str_cat(what, " ", str(option.shape()), " does not broadcast to ", str(t.shape())));
  return expand_to(prim::cast(option, t.dtype()), t.shape());
}

Tensor times_logarithm(const Tensor& p, const Tensor& x) {
  const Tensor nothing = logical_and(prim::equal(p, zeros_like(p)), prim::equal(x, full_like(x, -kInf)));
  return prim::mul(p, prim::where(nothing, zeros_like(x), x));
}

}  // namespace detail
using namespace detail;

Tensor mse_loss(Operand input, Operand target, Reduction reduction) {
  const OpScope scope("mse_loss", input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, mse_loss(input, target, reduction));
  const Pair p = compared(input, target, "mse_loss");
  return reduced(square(minus(p.a, p.b)), reduction, "mse_loss");
}
Tensor l1_loss(Operand input, Operand target, Reduction reduction) {
  const OpScope scope("l1_loss", input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, l1_loss(input, target, reduction));
  const Pair p = compared(input, target, "l1_loss");
  return reduced(abs(minus(p.a, p.b)), reduction, "l1_loss");
}

namespace {
// m (d - m / 2) with m = min(d, knee): d^2 / 2 below the knee and linear above.
Tensor knee(const Tensor& difference, double knee) {
  const Tensor d = abs(difference), m = prim::minimum(d, full_like(d, knee));
  return prim::mul(m, minus(d, mul(m, 0.5)));
}
}  // namespace

Tensor huber_loss(Operand input, Operand target, Reduction reduction, double delta) {
  const OpScope scope("huber_loss", input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, huber_loss(input, target, reduction, delta));
  must_be_positive(delta, "huber_loss", "delta");
  const Pair p = compared(input, target, "huber_loss");
  return reduced(knee(minus(p.a, p.b), delta), reduction, "huber_loss");
}
Tensor smooth_l1_loss(Operand input, Operand target, Reduction reduction, double beta) {
  const OpScope scope("smooth_l1_loss", input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, smooth_l1_loss(input, target, reduction, beta));
  if (beta == 0) return l1_loss(input, target, reduction);
  must_be_positive(beta, "smooth_l1_loss", "beta");
  const Pair p = compared(input, target, "smooth_l1_loss");
  return reduced(mul(knee(minus(p.a, p.b), beta), 1 / beta), reduction, "smooth_l1_loss");
}

Tensor kl_div(Operand input, Operand target, Reduction reduction, bool log_target) {
  const OpScope scope("kl_div", input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, kl_div(input, target, reduction, log_target));
  const auto [x, t] = compared(input, target, "kl_div");
  Tensor losses;
  if (log_target) {
    const Tensor p = exp(t);
    losses = prim::where(prim::equal(p, zeros_like(p)), zeros_like(p), prim::mul(p, minus(t, x)));
  } else {
    losses = minus(xlogy(t, t), times_logarithm(t, x));
  }
  if (reduction != Reduction::BatchMean) return reduced(losses, reduction, "kl_div");
  if (losses.rank() == 0) throw Error("kl_div", "Reduction::BatchMean needs a batch, axis 0; the input has no axes");
  const Tensor total = sum(losses), rows = total.graph().index({}, losses.extent(0));
  return prim::div(total, prim::cast(rows, total.dtype()));
}

namespace {
// max(v, least) with the derivative of v: gradients ignore the clamp, as in PyTorch.
Tensor at_least(const Tensor& v, double least) {
  return with_vjp(prim::maximum(v, full_like(v, least)), {v}, [](const VjpCall& c) { return std::vector{c.g()}; });
}
Tensor variance_of(const Operand& var, const Tensor& x) {
  must_be_floating(var, "gaussian_nll_loss", "var");
  const Shape& full = x.shape();
  Shape s = var->shape();
  if (s.size() + 1 == full.size()) s.push_back(1);
  std::size_t ones = 0;
  bool fits = s.size() == full.size();
  for (std::size_t i = 0; fits && i < s.size(); ++i)
    if (!(s[i] == full[i])) fits = s[i] == Dim(1) && ++ones == 1;
  if (!fits)
    throw Error("gaussian_nll_loss", str_cat("var ", str(var->shape()), " does not fit input ", str(full),
                                             "; it has that shape, one axis of 1 in it, or no last axis"));
  return prim::cast(var, x.dtype()).reshape(s).expand(full);
}
}  // namespace

Tensor gaussian_nll_loss(Operand input, Operand target, Operand var, const GaussianNllOptions& o) {
  const OpScope scope("gaussian_nll_loss", input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, gaussian_nll_loss(input, target, var, o));
  must_be_positive(o.eps, "gaussian_nll_loss", "eps");
  const Pair p = compared(input, target, "gaussian_nll_loss");
  const Tensor v = at_least(variance_of(var, p.a), o.eps);
  Tensor losses = mul(prim::add(log(v), prim::div(square(minus(p.a, p.b)), v)), 0.5);
  if (o.full) losses = add(losses, 0.5 * std::log(2 * std::numbers::pi));
  return reduced(losses, o.reduction, "gaussian_nll_loss");
}
Tensor poisson_nll_loss(Operand input, Operand target, const PoissonNllOptions& o) {
  const OpScope scope("poisson_nll_loss", input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, poisson_nll_loss(input, target, o));
  const auto [x, t] = compared(input, target, "poisson_nll_loss");
  Tensor losses = o.log_input ? minus(exp(x), prim::mul(t, x)) : minus(x, prim::mul(t, log(add(x, o.eps))));
  if (o.full) {
    const Tensor some = prim::less_than(full_like(t, 1), t), n = prim::where(some, t, full_like(t, 1));
    const Tensor stirling = prim::add(minus(prim::mul(n, log(n)), n), mul(log(mul(n, 2 * std::numbers::pi)), 0.5));
    losses = prim::add(losses, prim::where(some, stirling, zeros_like(t)));  // NaN stays NaN
  }
  return reduced(losses, o.reduction, "poisson_nll_loss");
}

Tensor cosine_embedding_loss(Operand input1, Operand input2, Operand target, double margin, Reduction reduction) {
  const char* op = "cosine_embedding_loss";
  const OpScope scope(op, input1.at);
  LC_RETURN_IF_EITHER_HALF(input1, input2, cosine_embedding_loss(input1, input2, target, margin, reduction));
  const auto [a, b] = compared(input1, input2, op);
  if (a.rank() < 1 || a.rank() > 2) throw Error(op, "inputs are [N, D] or [D], not " + str(a.shape()));
  Shape rows = a.shape();
  rows.pop_back();
  if (target->shape() != rows)
    throw Error(op, str_cat("a target ", str(target->shape()), " does not fit inputs ", str(a.shape())));
  constexpr double kEps = 1e-12;  // aten/src/ATen/native/Loss.cpp
  const Tensor aa = add(sum(square(a), {-1}), kEps), bb = add(sum(square(b), {-1}), kEps);
  const Tensor cosine = prim::div(sum(prim::mul(a, b), {-1}), prim::sqrt(prim::mul(aa, bb)));
  const Tensor zero = zeros_like(cosine), t = prim::cast(target, cosine.dtype());
  const Tensor apart = prim::where(eq(t, -1), positive_part(add(cosine, -margin)), zero);
  return reduced(prim::where(eq(t, 1), add(neg(cosine), 1), apart), reduction, op);
}
Tensor hinge_embedding_loss(Operand input, Operand target, double margin, Reduction reduction) {
  const char* op = "hinge_embedding_loss";
  const OpScope scope(op, input.at);
  LC_RETURN_IF_HALF(input, hinge_embedding_loss(input, target, margin, reduction));
  must_be_floating(input, op, "input");
  must_match(input, target, op, "target");
  const Tensor x = input, t = prim::cast(target, x.dtype()), zero = zeros_like(x);
  const Tensor apart = prim::where(eq(t, 1), zero, positive_part(add(neg(x), margin)));
  return reduced(prim::add(apart, prim::where(eq(t, -1), zero, x)), reduction, op);
}
Tensor margin_ranking_loss(Operand input1, Operand input2, Operand target, double margin, Reduction reduction) {
  const char* op = "margin_ranking_loss";
  const OpScope scope(op, input1.at);
  LC_RETURN_IF_EITHER_HALF(input1, input2, margin_ranking_loss(input1, input2, target, margin, reduction));
  const auto [a, b] = compared(input1, input2, op);
  must_match(input1, target, op, "target");
  const Tensor t = prim::cast(target, a.dtype());
  return reduced(positive_part(add(prim::mul(neg(t), minus(a, b)), margin)), reduction, op);
}
Tensor soft_margin_loss(Operand input, Operand target, Reduction reduction) {
  const OpScope scope("soft_margin_loss", input.at);
  LC_RETURN_IF_HALF(input, soft_margin_loss(input, target, reduction));
  must_be_floating(input, "soft_margin_loss", "input");
  must_match(input, target, "soft_margin_loss", "target");
  const Tensor x = input, t = prim::cast(target, x.dtype());
  return reduced(neg(logsigmoid(prim::mul(t, x))), reduction, "soft_margin_loss");
}
Tensor triplet_margin_loss(Operand anchor, Operand positive, Operand negative, const TripletMarginOptions& o) {
  const char* op = "triplet_margin_loss";
  const OpScope scope(op, anchor.at);
  const DType type = result_type(promoted(anchor, positive, op).a, negative),
              wide = is_narrow(type) ? DType::F32 : type;
  for (const Operand* t : {&anchor, &positive, &negative}) {
    must_be_floating(*t, op, "an operand");
    must_match(anchor, *t, op, "another operand");
  }
  if (anchor->rank() < 1 || anchor->rank() > 2)
    throw Error(op, "operands are [N, D] or [D], not " + str(anchor->shape()));
  must_be_positive(o.p, op, "p");
  const Tensor a = prim::cast(anchor, wide), p = prim::cast(positive, wide), n = prim::cast(negative, wide);
  // like torch.nn.functional.pairwise_distance
  const auto distance = [&](const Tensor& x, const Tensor& y) { return norm(add(minus(x, y), o.eps), o.p, {-1}); };
  Tensor far = distance(a, n);
  if (o.swap) far = prim::minimum(far, distance(p, n));
  const Tensor losses = positive_part(add(minus(distance(a, p), far), o.margin));
  return prim::cast(reduced(losses, o.reduction, op), type);
}

}  // namespace lc
