// Losses of classes.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/loss/internal.h"

namespace lc {
using namespace detail;

namespace {

// Returns the class axis of [C], [N, C] or [N, C, d...].
int class_axis(const Operand& input, const char* op) {
  must_be_floating(input, op, "input");
  if (input->rank() == 0) throw Error(op, "input is [C], [N, C] or [N, C, d...]; it has no axes");
  return input->rank() == 1 ? 0 : 1;
}

void must_be_classes(const Operand& input, const Operand& target, int axis, const char* op) {
  if (is_float(target->dtype()) || target->dtype() == DType::Bool)
    throw Error(op, str_cat("target is ", name(target->dtype()), "; classes are integers"));
  Shape s = input->shape();
  s.erase(s.begin() + axis);
  if (target->shape() != s)
    throw Error(op, str_cat("input ", str(input->shape()), " has classes of ", str(s), ", not ", str(target->shape())));
}

// Returns the class weights in x's type; undefined if there are none.
Tensor class_weights(const Tensor& weight, const Tensor& x, int axis, const char* op) {
  if (!weight.defined()) return {};
  must_be_floating(weight, op, "weight");
  if (weight.rank() != 1 || !(weight.extent(0) == x.extent(axis)))
    throw Error(op, str_cat("a weight ", str(weight.shape()), " does not fit ", x.extent(axis), " classes"));
  return prim::cast(weight, x.dtype());
}
Tensor along_classes(const Tensor& weight, const Tensor& x, int axis) {
  Shape s(static_cast<std::size_t>(x.rank()), 1);
  s[axis] = weight.extent(0);
  return weight.reshape(s).expand(x.shape());
}
// Looks up the weight of each class in `index`.
Tensor weights_of(const Tensor& weight, const Tensor& index) {
  return prim::gather(weight, index.reshape({product(index.shape())}), 0).reshape(index.shape());
}

Tensor exists(const Tensor& index, const Dim& classes) {
  const Tensor n = index.graph().index(index.shape(), classes);
  return logical_and(prim::less_than(full_like(index, -1), index), prim::less_than(index, n));
}
// Returns `value` for existing classes, NaN otherwise.
Tensor or_nan(const Tensor& condition, const Tensor& value) {
  return prim::where(condition, value, full_like(value, kNaN));
}
// Returns x[.., class, ..]: the shape of x without the axis.
Tensor pick(const Tensor& x, const Tensor& index, int axis) {
  return prim::gather(x, index.unsqueeze(axis), axis).squeeze(axis);
}

// log(sum(exp(x))) - x[class] of logits. The derivative, softmax(x) minus 1 at the class, is a single loop; that of the
// nodes would scatter and differentiate a maximum that cancels.
Tensor surprise(const Tensor& x, const Tensor& index, int axis) {
  const Tensor top = amax(x, {axis}, true);
  const Tensor total = sum(exp_of_difference(minus(x, top.expand(x.shape()))), {axis});
  const Tensor y = minus(log(total), minus(pick(x, index, axis), top.squeeze(axis)));
  return with_vjp(or_nan(exists(index, x.extent(axis)), y), {x, index}, [axis](const VjpCall& c) {
    const Tensor &logits = c.in[0], &wanted = c.in[1];
    const auto spread = [&](const Tensor& t) { return t.unsqueeze(axis).expand(logits.shape()); };
    const Dim n = logits.extent(axis);
    const Tensor hit =
        prim::equal(spread(wanted), logits.graph().index(logits.shape(), Dim::index(axis, n), wanted.dtype()));
    const Tensor p = softmax(logits, axis), d = prim::where(hit, add(p, -1), p);
    return std::vector<Tensor>{prim::mul(spread(c.g()), or_nan(spread(exists(wanted, n)), d)), Tensor()};
  });
}

// Class targets: `counts` marks those not ignored; `index` is the class to read (0 if ignored).
struct Classes {
  Tensor counts, index;
  Classes(const Tensor& target, std::int64_t ignored, const Dim& classes) {
    const Tensor t = prim::cast(target, DType::I64);
    counts = logical_not(prim::equal(t, t.graph().index(t.shape(), ignored)));
    index = in_range(prim::where(counts, t, zeros_like(t)), classes);
  }
  // Reduces the losses that count; the mean is divided by their weights.
  Tensor reduced(const Tensor& losses, const Tensor& weights, Reduction reduction, const char* op) const {
    const Tensor zero = zeros_like(losses), all = prim::where(counts, losses, zero);
    if (reduction != Reduction::Mean) return detail::reduced(all, reduction, op);
    const Tensor w = weights.defined() ? weights : full_like(losses, 1);
    return prim::div(sum(all), sum(prim::where(counts, w, zero)));
  }
};

Tensor of_classes(const Tensor& x, const Operand& target, int axis, const CrossEntropyOptions& o, const char* op) {
  must_be_classes(x, target, axis, op);
  const Classes c(target, o.ignore_index, x.extent(axis));
  const Tensor weight = class_weights(o.weight, x, axis, op);
  const Tensor weights = weight.defined() ? weights_of(weight, c.index) : Tensor();
  Tensor losses = surprise(x, c.index, axis);
  if (weights.defined()) losses = prim::mul(losses, weights);
  if (o.label_smoothing > 0) {
    Tensor all = log_softmax(x, axis);
    if (weight.defined()) all = prim::mul(all, along_classes(weight, x, axis));
    losses = minus(mul(losses, 1 - o.label_smoothing), mul(mean(all, {axis}), o.label_smoothing));
  }
  return c.reduced(losses, weights, o.reduction, op);
}

Tensor of_probabilities(const Tensor& x, const Operand& target, int axis, const CrossEntropyOptions& o,
                        const char* op) {
  must_match(x, target, op, "a target of probabilities");
  if (o.ignore_index >= 0)
    throw Error(op,
                str_cat("ignore_index is ", o.ignore_index, ", and the target is probabilities; it is for classes"));
  Tensor p = prim::cast(target, x.dtype());
  if (o.label_smoothing > 0) {
    const Tensor classes = prim::cast(x.graph().index(x.shape(), x.extent(axis)), x.dtype());
    p = prim::add(mul(p, 1 - o.label_smoothing), prim::div(full_like(x, o.label_smoothing), classes));
  }
  Tensor terms = times_logarithm(p, log_softmax(x, axis));
  if (const Tensor w = class_weights(o.weight, x, axis, op); w.defined())
    terms = prim::mul(terms, along_classes(w, x, axis));
  return reduced(neg(sum(terms, {axis})), o.reduction, op);
}

}  // namespace

Tensor cross_entropy(Operand input, Operand target, const CrossEntropyOptions& o) {
  const char* op = "cross_entropy";
  const OpScope scope(op, input.at);
  LC_RETURN_IF_HALF(input, cross_entropy(input, target, o));
  const int axis = class_axis(input, op);
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    throw Error(op, str_cat("label_smoothing is ", o.label_smoothing, "; it lies between 0 and 1"));
  return is_float(target->dtype()) ? of_probabilities(input, target, axis, o, op)
                                   : of_classes(input, target, axis, o, op);
}

Tensor nll_loss(Operand input, Operand target, const NllOptions& o) {
  const char* op = "nll_loss";
  const OpScope scope(op, input.at);
  LC_RETURN_IF_HALF(input, nll_loss(input, target, o));
  const int axis = class_axis(input, op);
  must_be_classes(input, target, axis, op);
  const Classes c(target, o.ignore_index, input->extent(axis));
  const Tensor weight = class_weights(o.weight, input, axis, op);
  const Tensor weights = weight.defined() ? weights_of(weight, c.index) : Tensor();
  Tensor losses = or_nan(exists(c.index, input->extent(axis)), neg(pick(input, c.index, axis)));
  if (weights.defined()) losses = prim::mul(losses, weights);
  return c.reduced(losses, weights, o.reduction, op);
}

namespace {

Tensor bounded(const Tensor& logarithm) { return prim::maximum(logarithm, full_like(logarithm, -100)); }

// The derivative is (x - t) / (x (1 - x)), with the divisor clamped to 1e-12 in f32 as in PyTorch; that of the nodes
// would be 0 times infinity where a logarithm is clamped.
Tensor of_probability(const Tensor& x, const Tensor& t) {
  const auto yes = [](const Tensor& p) { return bounded(log(p)); };
  const auto no = [](const Tensor& p) { return bounded(log1p(neg(p))); };
  const Tensor y = minus(prim::mul(add(t, -1), no(x)), prim::mul(t, yes(x)));
  return with_vjp(y, {x, t}, [=](const VjpCall& c) {
    const Tensor &p = c.in[0], &target = c.in[1], spread = prim::mul(p, add(neg(p), 1));
    const Tensor d = prim::div(minus(p, target), prim::maximum(spread, full_like(spread, 1e-12f)));
    return std::vector{prim::mul(c.g(), d), prim::mul(c.g(), minus(no(p), yes(p)))};
  });
}

// softplus(x) and softplus(-x), as sums of non-negative terms.
struct Softplus {
  Tensor of, of_minus;
  explicit Softplus(const Tensor& x) {
    const Tensor e = log1p(exp(neg(abs(x))));
    of = prim::add(e, positive_part(x));
    of_minus = prim::add(e, positive_part(neg(x)));
  }
};
// p t softplus(-x) + (1 - t) softplus(x). The derivative is smooth at x = 0, where those of the nodes have jumps that
// cancel.
Tensor of_logit(const Tensor& x, const Tensor& t, const Tensor& p) {
  const Softplus s(x);
  const Tensor y = prim::add(prim::mul(prim::mul(p, t), s.of_minus), prim::mul(add(neg(t), 1), s.of));
  return with_vjp(y, {x, t, p}, [](const VjpCall& c) {
    const Tensor &logit = c.in[0], &target = c.in[1], &positive = c.in[2];
    const Softplus both(logit);
    const Tensor dx = minus(prim::mul(add(neg(target), 1), sigmoid(logit)),
                            prim::mul(prim::mul(positive, target), sigmoid(neg(logit))));
    const Tensor dt = minus(prim::mul(positive, both.of_minus), both.of);
    return std::vector{prim::mul(c.g(), dx), prim::mul(c.g(), dt), prim::mul(c.g(), prim::mul(target, both.of_minus))};
  });
}

}  // namespace

Tensor binary_cross_entropy(Operand input, Operand target, const BinaryCrossEntropyOptions& o) {
  const char* op = "binary_cross_entropy";
  const OpScope scope(op, input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, binary_cross_entropy(input, target, o));
  const auto [x, t] = compared(input, target, op);
  Tensor losses = of_probability(x, t);
  if (o.weight.defined()) losses = prim::mul(losses, spread(o.weight, x, op, "weight"));
  return reduced(losses, o.reduction, op);
}

Tensor binary_cross_entropy_with_logits(Operand input, Operand target, const BinaryCrossEntropyWithLogitsOptions& o) {
  const char* op = "binary_cross_entropy_with_logits";
  const OpScope scope(op, input.at);
  LC_RETURN_IF_EITHER_HALF(input, target, binary_cross_entropy_with_logits(input, target, o));
  const auto [x, t] = compared(input, target, op);
  const Tensor p = o.pos_weight.defined() ? spread(o.pos_weight, x, op, "pos_weight") : full_like(x, 1);
  Tensor losses = of_logit(x, t, p);
  if (o.weight.defined()) losses = prim::mul(losses, spread(o.weight, x, op, "weight"));
  return reduced(losses, o.reduction, op);
}

}  // namespace lc
