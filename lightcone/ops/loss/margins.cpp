// Margin losses over class scores, and the multi-label loss.
#include "lightcone/ops/loss/internal.h"

namespace lc {
using namespace detail;

namespace {

// Returns class scores [N, C] or [C] as [N, C].
Tensor scores_of(const Operand& input, const char* op) {
  must_be_floating(input, op, "input");
  if (input->rank() != 1 && input->rank() != 2)
    throw Error(op, str_cat("input is [N, C] or [C], not ", str(input->shape())));
  return input->rank() == 2 ? Tensor(input) : input->unsqueeze(0);
}
void must_be_integers(const Operand& target, const char* op) {
  if (!is_integer(target->dtype())) throw Error(op, str_cat("targets are integers, not ", name(target->dtype())));
}
// Encodes classes as one-hot bools: [N] -> [N, C].
Tensor is_class(const Tensor& classes, const Dim& count) {
  const Tensor c = classes.unsqueeze(-1);
  Shape s = classes.shape();
  s.push_back(count);
  const Tensor wide = prim::cast(c, DType::I64).expand(s);
  return prim::equal(wide, wide.graph().index(s, Dim::index(classes.rank(), count)));
}
// Returns [N], or [] for a single sample without a batch axis.
Tensor as_given(const Tensor& losses, const Operand& input) { return input->rank() == 2 ? losses : losses.squeeze(0); }

}  // namespace

Tensor multi_margin_loss(Operand input, Operand target, const MultiMarginOptions& o) {
  const char* op = "multi_margin_loss";
  const OpScope scope(op, input.at);
  LC_RETURN_IF_HALF(input, multi_margin_loss(input, target, o));
  const Tensor x = scores_of(input, op);
  must_be_integers(target, op);
  if (o.p != 1 && o.p != 2) throw Error(op, str_cat("p is 1 or 2, not ", o.p));
  const Tensor classes = input->rank() == 1 && target->rank() == 0 ? target->unsqueeze(0) : Tensor(target);
  if (classes.rank() != 1 || !(classes.extent(0) == x.extent(0)))
    throw Error(op, str_cat("target is ", str(Shape{x.extent(0)}), " for input ", str(input->shape()), ", not ",
                            str(target->shape())));
  const Tensor own = is_class(in_range(classes, x.extent(1)), x.extent(1)), zero = zeros_like(x);
  const Tensor mine = sum(prim::where(own, x, zero), {1}, true);
  Tensor apart = positive_part(add(minus(x, mine.expand(x.shape())), o.margin));
  if (o.p == 2) apart = prim::mul(apart, apart);
  Tensor losses = mean(prim::where(own, zero, apart), {1});
  if (o.weight.defined()) {
    const Tensor w = prim::cast(o.weight, x.dtype());
    if (w.rank() != 1 || !(w.extent(0) == x.extent(1)))
      throw Error(op, str_cat("weight is ", str(Shape{x.extent(1)}), ", not ", str(w.shape())));
    losses = prim::mul(losses, sum(prim::where(own, w.unsqueeze(0).expand(x.shape()), zero), {1}));
  }
  // A class out of range makes its loss NaN.
  const Tensor known = any(own, {1});
  return reduced(as_given(prim::where(known, losses, full_like(losses, kNaN)), input), o.reduction, op);
}

Tensor multilabel_margin_loss(Operand input, Operand target, Reduction reduction) {
  const char* op = "multilabel_margin_loss";
  const OpScope scope(op, input.at);
  LC_RETURN_IF_HALF(input, multilabel_margin_loss(input, target, reduction));
  must_match(input, target, op, "target");
  must_be_integers(target, op);
  const Tensor x = scores_of(input, op);
  const Dim n = x.extent(0), c = x.extent(1);
  const Tensor labels = prim::cast(input->rank() == 2 ? Tensor(target) : target->unsqueeze(0), DType::I64);
  const Tensor listed = prim::equal(cumsum(prim::cast(lt(labels, 0), DType::I64), 1), full_like(labels, 0));
  // [N, index in the list, class]
  const Tensor here = logical_and(is_class(labels, c), listed.unsqueeze(-1).expand({n, c, c}));
  const Tensor label = any(here, {1});  // [N, C]
  const Tensor wide = x.unsqueeze(1).expand({n, c, c}), nothing = zeros_like(wide);
  const Tensor mine = sum(prim::where(here, wide, nothing), {2}, true).expand({n, c, c});
  const Tensor counts =
      logical_and(any(here, {2}, true).expand({n, c, c}), logical_not(label).unsqueeze(1).expand({n, c, c}));
  const Tensor apart = prim::where(counts, positive_part(add(minus(wide, mine), 1)), nothing);
  const Tensor losses = prim::div(sum(apart, {1, 2}), prim::cast(x.graph().index(Shape{n}, c), x.dtype()));
  return reduced(as_given(losses, input), reduction, op);
}

Tensor multilabel_soft_margin_loss(Operand input, Operand target, const MultilabelSoftMarginOptions& o) {
  const char* op = "multilabel_soft_margin_loss";
  const OpScope scope(op, input.at);
  LC_RETURN_IF_HALF(input, multilabel_soft_margin_loss(input, target, o));
  must_be_floating(input, op, "input");
  must_match(input, target, op, "target");
  if (input->rank() == 0) throw Error(op, "needs an axis of classes");
  const Tensor losses = binary_cross_entropy_with_logits(input, prim::cast(target, input->dtype()),
                                                         {.weight = o.weight, .reduction = Reduction::None});
  return reduced(mean(losses, {-1}), o.reduction, op);
}

}  // namespace lc
