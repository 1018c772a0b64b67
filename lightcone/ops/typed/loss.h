// Losses, typed (ops/loss.h): a scalar, or unreduced with mse_loss<Reduction::None>(x, t). Part of typed.h.
#pragma once

#include "lightcone/macros_off.h"

#include "lightcone/ops/loss.h"
#include "lightcone/ops/typed/tensor.h"

namespace lc::typed {

// ---- shapes before the reduction ----------------------------------------------------------------------------
constexpr bool alike(const Shape& a, const Shape& b) {
  bool same = a.rank == b.rank;
  for (int i = 0; i < a.rank && same; ++i) same = !differ(a.d[i], b.d[i]);
  return same;
}
constexpr Inferred infer_compared(const char* op, const Shape& input, const Shape& other, const char* what = "target") {
  if (!alike(input, other))
    return refused(input, op, "input ", input, " and ", what, " ", other, " differ; nothing is broadcast");
  Inferred r{input, {}};
  for (int i = 0; i < input.rank; ++i) r.out.d[i] = better(input.d[i], other.d[i]);
  return r;
}
constexpr Inferred infer_compared(const char* op, const Shape& a, const Shape& b, const Shape& target) {
  const Inferred r = infer_compared(op, a, b);
  return r.ok() ? infer_compared(op, r.out, target) : r;
}
// Logits are [C], [N, C] or [N, C, d...]; targets are classes without C, or probabilities.
constexpr Inferred infer_classes(const char* op, const Shape& input, const Shape& target, bool probabilities) {
  if (input.rank == 0) return refused(input, op, "input is [C], [N, C] or [N, C, d...]; it has no axes");
  const int axis = input.rank == 1 ? 0 : 1;
  if (probabilities) {
    const Inferred r = infer_compared(op, input, target, "a target of probabilities");
    return r.ok() ? infer_reduce(op, r.out, &axis, 1, false) : r;
  }
  Inferred r = infer_reduce(op, input, &axis, 1, false);
  if (!alike(r.out, target)) return refused(r.out, op, "input ", input, " has classes of ", r.out, ", not ", target);
  for (int i = 0; i < r.out.rank; ++i) r.out.d[i] = better(r.out.d[i], target.d[i]);
  return r;
}
constexpr Inferred infer_variance(const Shape& input, const Shape& target, const Shape& var) {
  const char* op = "gaussian_nll_loss";
  const Inferred r = infer_compared(op, input, target);
  if (!r.ok()) return r;
  Shape s = var;
  if (s.rank + 1 == input.rank) s.push(1);
  int ones = 0;
  bool fits = s.rank == input.rank;
  for (int i = 0; i < input.rank && fits; ++i)
    if (differ(s.d[i], input.d[i])) fits = s.d[i] == Dim(1) && ++ones == 1;
  return fits ? r
              : refused(input, op, "var ", var, " does not fit input ", input,
                        "; it has that shape, one axis of 1 in it, or no last axis");
}
constexpr Inferred without_last(Inferred r) {
  if (r.ok() && r.out.rank > 0) --r.out.rank;
  return r;
}
constexpr Inferred infer_pairs(const Shape& a, const Shape& b, const Shape& target) {
  const char* op = "cosine_embedding_loss";
  const Inferred both = infer_compared(op, a, b);
  if (!both.ok()) return both;
  if (a.rank < 1 || a.rank > 2) return refused(a, op, "inputs are [N, D] or [D], not ", a);
  const Inferred r = without_last(both);
  return alike(r.out, target) ? r : refused(r.out, op, "a target ", target, " does not fit inputs ", a);
}
constexpr Inferred infer_triplets(const Shape& anchor, const Shape& positive, const Shape& negative) {
  const char* op = "triplet_margin_loss";
  for (const Shape* s : {&positive, &negative})
    if (const Inferred r = infer_compared(op, anchor, *s, "another operand"); !r.ok()) return r;
  if (anchor.rank < 1 || anchor.rank > 2) return refused(anchor, op, "operands are [N, D] or [D], not ", anchor);
  return without_last({anchor, {}});
}
constexpr Inferred infer_margin(const Shape& input, const Shape& target) {
  const char* op = "multi_margin_loss";
  if (input.rank != 1 && input.rank != 2) return refused(input, op, "input is [N, C] or [C], not ", input);
  const Inferred r = without_last({input, {}});
  Shape rows = r.out;
  if (rows.rank == 0) rows.push(1);
  const bool fits = alike(rows, target) || (input.rank == 1 && target.rank == 0);
  return fits ? r : refused(r.out, op, "target is ", rows, " for input ", input, ", not ", target);
}
constexpr Inferred infer_label_lists(const Shape& input, const Shape& target) {
  const char* op = "multilabel_margin_loss";
  const Inferred r = infer_compared(op, input, target);
  if (!r.ok()) return r;
  if (input.rank != 1 && input.rank != 2) return refused(input, op, "input is [N, C] or [C], not ", input);
  return without_last(r);
}
constexpr Inferred infer_labels(const Shape& input, const Shape& target) {
  const Inferred r = infer_compared("multilabel_soft_margin_loss", input, target);
  if (r.ok() && input.rank == 0) return refused(input, "multilabel_soft_margin_loss", "needs an axis of classes");
  return without_last(r);
}
constexpr Inferred infer_ctc(const Shape& log_probs, const Shape& targets) {
  const char* op = "ctc_loss";
  if ((log_probs.rank != 2 && log_probs.rank != 3) || targets.rank != log_probs.rank - 1)
    return refused(Shape{}, op, "log_probs ", log_probs, " and targets ", targets,
                   " are [T, N, C] and [N, S], or [T, C] and [S]");
  if (log_probs.d[0].named())
    return refused(Shape{}, op, "log_probs ", log_probs, " has ", log_probs.d[0],
                   " steps; they must be a number when the graph is written");
  Inferred r;
  if (log_probs.rank == 2) return r;
  if (differ(log_probs.d[1], targets.d[0]))
    return refused(Shape{}, op, "log_probs ", log_probs, " and targets ", targets,
                   " have different numbers of sequences");
  r.out.push(better(log_probs.d[1], targets.d[0]));
  return r;
}

// ---- reductions: the reduction determines the type ----------------------------------------------------------------
template <Reduction R>
constexpr Inferred reduced(Inferred losses) {
  if (R != Reduction::None) losses.out = Shape{};
  return losses;
}
// Throws Error if the options request unreduced losses but the type is a scalar.
template <Reduction R, class Options>
Options reducing(Options o, const char* op, const At& at) {
  const OpScope scope(op, at);
  if (R != Reduction::Mean) o.reduction = R;
  else if (o.reduction == Reduction::None)
    throw Error(op, lc::str_cat("a typed loss of each element is ", op, "<Reduction::None>(...)"));
  return o;
}

#define LC_AT const At& at = At::current()
#define LC_S(E, D) Tensor<E, D...>::static_shape
#define LC_OUT(RULE)                       \
  constexpr Inferred r = reduced<R>(RULE); \
  require<r.error>();                      \
  return wrap_as<E, r.out>

// ---- regression ----------------------------------------------------------------------------------------------
#define LC_LOSS(f, PARAMETERS, ARGUMENTS)                                                             \
  template <Reduction R = Reduction::Mean, class E, Dim... A, class F, Dim... B>                      \
  auto f(const Tensor<E, A...>& input, const Tensor<F, B...>& target, PARAMETERS LC_AT) {             \
    require<same_elements<E, F>(#f)>();                                                               \
    LC_OUT(infer_compared(#f, LC_S(E, A), LC_S(F, B)))(lc::f(Operand(input, at), target, ARGUMENTS)); \
  }
#define LC_COMMA ,
LC_LOSS(mse_loss, , R)
LC_LOSS(l1_loss, , R)
LC_LOSS(huber_loss, double delta = 1 LC_COMMA, R LC_COMMA delta)
LC_LOSS(smooth_l1_loss, double beta = 1 LC_COMMA, R LC_COMMA beta)
LC_LOSS(
    binary_cross_entropy, const BinaryCrossEntropyOptions& o = {} LC_COMMA, reducing<R>(o, "binary_cross_entropy", at))
LC_LOSS(
    binary_cross_entropy_with_logits, const BinaryCrossEntropyWithLogitsOptions& o = {} LC_COMMA,
    reducing<R>(o, "binary_cross_entropy_with_logits", at))
LC_LOSS(kl_div, bool log_target = false LC_COMMA, R LC_COMMA log_target)
LC_LOSS(
    poisson_nll_loss, const PoissonNllOptions& o = {} LC_COMMA, reducing<R>(o, "poisson_nll_loss", at))
#undef LC_LOSS
template <Reduction R = Reduction::Mean, class E, Dim... A, class F, Dim... B, class G, Dim... V>
auto gaussian_nll_loss(const Tensor<E, A...>& input, const Tensor<F, B...>& target, const Tensor<G, V...>& var,
                       const GaussianNllOptions& o = {}, LC_AT) {
  require<same_elements<E, F>("gaussian_nll_loss")>();
  LC_OUT(infer_variance(LC_S(E, A), LC_S(F, B), LC_S(G, V)))
  (lc::gaussian_nll_loss(Operand(input, at), target, var, reducing<R>(o, "gaussian_nll_loss", at)));
}

// ---- classification: targets are integers or, for cross_entropy(), probabilities ----------------------------------
template <Reduction R = Reduction::Mean, class E, Dim... A, class F, Dim... B>
auto cross_entropy(const Tensor<E, A...>& input, const Tensor<F, B...>& target, const CrossEntropyOptions& o = {},
                   LC_AT) {
  LC_OUT(infer_classes("cross_entropy", LC_S(E, A), LC_S(F, B), kFloating<F>))
  (lc::cross_entropy(Operand(input, at), target, reducing<R>(o, "cross_entropy", at)));
}
template <Reduction R = Reduction::Mean, class E, Dim... A, class F, Dim... B>
auto nll_loss(const Tensor<E, A...>& input, const Tensor<F, B...>& target, const NllOptions& o = {}, LC_AT) {
  static_assert(!kFloating<F>, "nll_loss: classes are integers");
  LC_OUT(infer_classes("nll_loss", LC_S(E, A), LC_S(F, B), false))
  (lc::nll_loss(Operand(input, at), target, reducing<R>(o, "nll_loss", at)));
}

// ---- with a margin; targets are 1 or -1, or classes, of any type ---------------------------------------------------
#define LC_LOSS(f, RULE, PARAMETERS, ARGUMENTS)                                           \
  template <Reduction R = Reduction::Mean, class E, Dim... A, class F, Dim... B>          \
  auto f(const Tensor<E, A...>& input, const Tensor<F, B...>& target, PARAMETERS LC_AT) { \
    constexpr Shape x = LC_S(E, A), t = LC_S(F, B);                                       \
    LC_OUT(RULE)(lc::f(Operand(input, at), target, ARGUMENTS));                           \
  }
LC_LOSS(hinge_embedding_loss, infer_compared("hinge_embedding_loss", x, t), double margin = 1 LC_COMMA,
        margin LC_COMMA R)
LC_LOSS(soft_margin_loss, infer_compared("soft_margin_loss", x, t), , R)
LC_LOSS(multilabel_margin_loss, infer_label_lists(x, t), , R)
LC_LOSS(
    multilabel_soft_margin_loss, infer_labels(x, t), const MultilabelSoftMarginOptions& o = {} LC_COMMA,
    reducing<R>(o, "multilabel_soft_margin_loss", at))
LC_LOSS(
    multi_margin_loss, infer_margin(x, t), const MultiMarginOptions& o = {} LC_COMMA,
    reducing<R>(o, "multi_margin_loss", at))
#undef LC_LOSS
#define LC_LOSS(f, RULE, PARAMETERS, ARGUMENTS)                                                     \
  template <Reduction R = Reduction::Mean, class E, Dim... A, class F, Dim... B, class G, Dim... C> \
  auto f(const Tensor<E, A...>& first, const Tensor<F, B...>& second, const Tensor<G, C...>& third, \
         PARAMETERS LC_AT) {                                                                        \
    require<same_elements<E, F>(#f)>();                                                             \
    constexpr Shape x = LC_S(E, A), y = LC_S(F, B), z = LC_S(G, C);                                 \
    LC_OUT(RULE)(lc::f(Operand(first, at), second, third, ARGUMENTS));                              \
  }
LC_LOSS(cosine_embedding_loss, infer_pairs(x, y, z), double margin = 0 LC_COMMA, margin LC_COMMA R)
LC_LOSS(margin_ranking_loss, infer_compared("margin_ranking_loss", x, y, z), double margin = 0 LC_COMMA,
        margin LC_COMMA R)
LC_LOSS(
    triplet_margin_loss, infer_triplets(x, y, z), const TripletMarginOptions& o = {} LC_COMMA,
    reducing<R>(o, "triplet_margin_loss", at))
#undef LC_LOSS
#undef LC_COMMA

// ---- sequences ---------------------------------------------------------------------------------------------------
template <Reduction R = Reduction::Mean, class E, Dim... A, class T, Dim... B, class I, Dim... N, class J, Dim... M>
auto ctc_loss(const Tensor<E, A...>& log_probs, const Tensor<T, B...>& targets, const Tensor<I, N...>& input_lengths,
              const Tensor<J, M...>& target_lengths, const CtcOptions& o = {}, LC_AT) {
  static_assert(std::is_integral_v<T> && std::is_integral_v<I> && std::is_integral_v<J>,
                "ctc_loss: targets and lengths are integers");
  LC_OUT(infer_ctc(LC_S(E, A), LC_S(T, B)))
  (lc::ctc_loss(Operand(log_probs, at), targets, input_lengths, target_lengths, reducing<R>(o, "ctc_loss", at)));
}
#undef LC_OUT
#undef LC_S
#undef LC_AT

}  // namespace lc::typed
#include "lightcone/macros_on.h"
