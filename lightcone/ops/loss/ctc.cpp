// Connectionist temporal classification.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/loss/internal.h"

namespace lc {
using namespace detail;

namespace {

constexpr const char* kOp = "ctc_loss";

// log(exp(a) + exp(b) + exp(c)), possibly -inf. There the derivative is 0, while that of the nodes is 0 times infinity.
Tensor log_sum(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor top = prim::maximum(prim::maximum(a, b), c);
  const Tensor m = prim::where(prim::equal(top, full_like(top, -kInf)), zeros_like(top), top);
  const auto part = [&](const Tensor& t) { return exp(minus(t, m)); };
  const Tensor y = prim::add(log(prim::add(prim::add(part(a), part(b)), part(c))), m);
  return with_vjp(y, {a, b, c}, [](const VjpCall& call) {
    const Tensor& sum = call.y();
    const Tensor never = prim::equal(sum, full_like(sum, -kInf)), zero = zeros_like(sum);
    std::vector<Tensor> d;
    for (const Tensor& t : call.in)
      d.push_back(prim::mul(call.g(), prim::where(never, zero, exp(minus(t, prim::where(never, zero, sum))))));
    return d;
  });
}

// The label sequence with blanks before, between and after labels, [N, 2 S + 1].
Tensor with_blanks(const Tensor& targets, std::int64_t blank) {
  const Dim n = targets.extent(0), s = targets.extent(1);
  const Tensor pairs = stack({full(targets.graph(), {n, s}, static_cast<double>(blank), DType::I64), targets}, 2);
  const Tensor last = full(targets.graph(), {n, 1}, static_cast<double>(blank), DType::I64);
  return concat({pairs.reshape({n, s * 2}), last}, 1);
}
// Shifts by `steps` along axis 1 and fills the start with `fill`.
Tensor shifted(const Tensor& t, int steps, double fill) {
  return pad(t, 1, steps, 0, PadMode::Constant, fill).slice(1, 0, t.extent(1));
}
// Expands [N] to [N, L].
Tensor per_row(const Tensor& t, const Dim& columns) { return t.unsqueeze(1).expand({t.extent(0), columns}); }

Tensor as_lengths(const Operand& t, const Dim& n, const char* what) {
  if (is_float(t->dtype()) || t->dtype() == DType::Bool)
    throw Error(kOp, str_cat(what, " are ", name(t->dtype()), "; lengths are integers"));
  if (t->rank() != 1 || !(t->extent(0) == n))
    throw Error(kOp, str_cat(what, " are ", str(t->shape()), "; one for each of ", n, " sequences is wanted"));
  return prim::cast(t, DType::I64);
}

// Maps log_probs [T, N, C], targets [N, S] and lengths [N] to losses [N].
Tensor losses_of(const Tensor& log_probs, const Tensor& targets, const Tensor& times, const Tensor& lengths,
                 std::int64_t blank) {
  Graph& g = log_probs.graph();
  const Dim n = log_probs.extent(1), classes = log_probs.extent(2);
  const std::int64_t steps = *log_probs.extent(0).constant();
  const Tensor said = with_blanks(targets, blank);
  const Dim length = said.extent(1);
  const Tensor place = g.index({n, length}, Dim::index(1, length)),
               minus_inf = full(g, {n, length}, -kInf, log_probs.dtype());
  // labels out of range are never emitted
  const Tensor exists =
      logical_and(prim::less_than(full_like(said, -1), said), prim::less_than(said, g.index(said.shape(), classes)));
  const Tensor emitted = prim::gather(log_probs, said.unsqueeze(0).expand({steps, n, length}), 2);
  // skips a blank between two different labels
  const Tensor skips = logical_not(logical_or(prim::equal(said, full_like(said, static_cast<double>(blank))),
                                              prim::equal(said, shifted(said, 2, static_cast<double>(blank)))));
  // before the first step: the empty prefix with probability 1
  Tensor alpha = prim::where(prim::equal(place, zeros_like(place)), zeros_like(minus_inf), minus_inf);
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor two = prim::where(skips, shifted(alpha, 2, -kInf), minus_inf);
    const Tensor here = prim::where(exists, emitted.slice(0, t, t + 1).squeeze(0), minus_inf);
    const Tensor next = prim::add(log_sum(alpha, shifted(alpha, 1, -kInf), two), here);
    const Tensor runs = prim::less_than(full_like(times, static_cast<double>(t)), times);
    alpha = prim::where(per_row(runs, length), next, alpha);
  }
  const auto at = [&](const Tensor& index) { return prim::gather(alpha, index.unsqueeze(1), 1).squeeze(1); };
  const Tensor end = mul(lengths, 2), never = full(g, {n}, -kInf, alpha.dtype());
  const Tensor some = prim::less_than(zeros_like(lengths), lengths);
  const Tensor label = prim::where(some, at(prim::where(some, add(end, -1), zeros_like(end))), never);
  const Tensor losses = neg(log_sum(at(end), label, never));
  const auto within = [&](const Tensor& v, const Dim& most) {
    return logical_and(prim::less_than(full_like(v, -1), v), prim::less_than(v, g.index(v.shape(), most + 1)));
  };
  const Tensor sound = logical_and(within(times, steps), within(lengths, targets.extent(1)));
  return prim::where(sound, losses, full_like(losses, kNaN));
}

}  // namespace

Tensor ctc_loss(Operand log_probs, Operand targets, Operand input_lengths, Operand target_lengths,
                const CtcOptions& o) {
  const OpScope scope(kOp, log_probs.at);
  LC_RETURN_IF_HALF(log_probs, ctc_loss(log_probs, targets, input_lengths, target_lengths, o));
  must_be_floating(log_probs, kOp, "log_probs");
  if (is_float(targets->dtype()) || targets->dtype() == DType::Bool)
    throw Error(kOp, str_cat("targets are ", name(targets->dtype()), "; classes are integers"));
  const int rank = log_probs->rank();
  if ((rank != 2 && rank != 3) || targets->rank() != rank - 1)
    throw Error(kOp, str_cat("log_probs ", str(log_probs->shape()), " and targets ", str(targets->shape()),
                             " are [T, N, C] and [N, S], or [T, C] and [S]"));
  if (!log_probs->extent(0).constant())
    throw Error(kOp, str_cat("log_probs ", str(log_probs->shape()), " has ", log_probs->extent(0),
                             " steps; they must be a number when the graph is written"));
  if (o.blank < 0 || !provably_below(Dim(o.blank), log_probs->extent(-1)))
    throw Error(kOp, str_cat("blank is ", o.blank, ", and there are ", log_probs->extent(-1), " classes"));
  const bool one = rank == 2;
  const auto batched = [&](const Operand& t, int axis) { return one ? t->unsqueeze(axis) : t.tensor; };
  const auto lengths_of = [&](const Operand& t) { return one && t->rank() == 0 ? t->unsqueeze(0) : t.tensor; };
  const Tensor lp = batched(log_probs, 1), labels = prim::cast(batched(targets, 0), DType::I64);
  if (!(labels.extent(0) == lp.extent(1)))
    throw Error(kOp, str_cat("log_probs ", str(log_probs->shape()), " and targets ", str(targets->shape()),
                             " have different numbers of sequences"));
  const Tensor times = as_lengths(lengths_of(input_lengths), lp.extent(1), "input_lengths"),
               lengths = as_lengths(lengths_of(target_lengths), lp.extent(1), "target_lengths");
  Tensor losses = losses_of(lp, labels, times, lengths, o.blank);
  if (o.zero_infinity) losses = prim::where(prim::equal(losses, full_like(losses, kInf)), zeros_like(losses), losses);
  if (o.reduction == Reduction::Mean)
    losses = prim::div(losses, prim::cast(prim::maximum(lengths, full_like(lengths, 1)), losses.dtype()));
  return reduced(one ? losses.squeeze(0) : losses, o.reduction, kOp);
}

}  // namespace lc
