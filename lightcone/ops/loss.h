// The losses of torch.nn.functional. Names, meanings, defaults and the order of options are PyTorch's. Losses of 16-bit
// floats are computed in f32, including the sum or mean, and rounded once.
//
// Compared tensors must be floating and have one shape: PyTorch broadcasts some of them with a warning ([N] against [N,
// 1] is [N, N]); here that throws Error. Data never causes an Error: a class out of range makes its loss NaN, a
// probability outside [0, 1] makes its logarithm NaN.
//
// Every function throws Error if shapes or element types do not fit or an option is invalid.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>

#include "lightcone/ops/ops.h"

namespace lc {

// The reduction of the elements' losses. The mean of no elements is NaN, as in PyTorch.
enum class Reduction : std::uint8_t {
  None,       // no reduction
  Mean,       // mean of all elements unless noted
  Sum,        // sum of all elements, a scalar
  BatchMean,  // kl_div only: the sum divided by the extent of axis 0
};

// ---- regression: input and target of one shape --------------------------------------------------
Tensor mse_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean);  // (x - t)^2
Tensor l1_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean);   // |x - t|
// With d = |x - t|: d^2 / 2 if d < delta, else delta (d - delta / 2); delta > 0.
Tensor huber_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean, double delta = 1);
// With d = |x - t|: d^2 / (2 beta) if d < beta, else d - beta / 2; beta = 0 gives l1_loss.
Tensor smooth_l1_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean, double beta = 1);

// ---- classification ----------------------------------------------------------------------------
struct CrossEntropyOptions {
  Tensor weight = {};                // per class, floating [C]
  std::int64_t ignore_index = -100;  // targets of this class are excluded from sum and mean
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;  // in [0, 1]: fraction of the target spread evenly over all classes
};
// The cross entropy of logits [C], [N, C] or [N, C, d1, ...]. Targets are class indices (integers of the same shape
// without C) or probabilities (floating, of the same shape). The mean over classes is divided by the sum of their
// weights, that over probabilities by the number of targets. Computed as log(sum(exp(x - max x))) - (x[class] - max x),
// which neither overflows nor loses small losses. Probability 0 times -inf is 0 (PyTorch: NaN).
Tensor cross_entropy(Operand input, Operand target, const CrossEntropyOptions& o = {});
struct NllOptions {
  Tensor weight = {};
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
};
// The negative log likelihood of log-probabilities (log_softmax) and classes: -weight[class] x[class].
Tensor nll_loss(Operand input, Operand target, const NllOptions& o = {});

struct BinaryCrossEntropyOptions {
  Tensor weight = {};  // broadcasts to the shape of input
  Reduction reduction = Reduction::Mean;
};
// -(t log x + (1 - t) log(1 - x)) of probabilities x; logarithms are clamped to at least -100, as in PyTorch.
Tensor binary_cross_entropy(Operand input, Operand target, const BinaryCrossEntropyOptions& o = {});
struct BinaryCrossEntropyWithLogitsOptions {
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
  Tensor pos_weight = {};  // weight of the positive term; broadcasts to the shape of input
};
// -(p t log s(x) + (1 - t) log(1 - s(x))) of logits x, with the sigmoid s and p = pos_weight. Computed as a sum of
// terms of one sign, so that small losses are accurate.
Tensor binary_cross_entropy_with_logits(Operand input, Operand target,
                                        const BinaryCrossEntropyWithLogitsOptions& o = {});

// ---- distributions ----------------------------------------------------------------------------------

// t (log t - x) of log-probabilities x and probabilities t, or exp(t) (t - x) if log_target. For t = 0 (or, with
// log_target, t = -inf) the loss is 0 for any x (PyTorch: NaN if x is -inf).
Tensor kl_div(Operand input, Operand target, Reduction reduction = Reduction::Mean, bool log_target = false);
struct GaussianNllOptions {
  bool full = false;  // adds the constant log(2 pi) / 2
  double eps = 1e-6;  // lower bound of the variance; > 0
  Reduction reduction = Reduction::Mean;
};
// (log v + (x - t)^2 / v) / 2 with v = max(var, eps). var has the shape of input, that shape with a last axis of extent
// 1, or that shape without the last axis. A negative variance, an error in PyTorch, counts as eps.
Tensor gaussian_nll_loss(Operand input, Operand target, Operand var, const GaussianNllOptions& o = {});
struct PoissonNllOptions {
  bool log_input = true;  // exp(x) - t x, else x - t log(x + eps)
  bool full = false;      // adds Stirling's t log t - t + log(2 pi t) / 2 where t > 1
  double eps = 1e-8;
  Reduction reduction = Reduction::Mean;
};
// The Poisson negative log likelihood; see the options for the formula.
Tensor poisson_nll_loss(Operand input, Operand target, const PoissonNllOptions& o = {});

// ---- pairs and triples; targets are 1 or -1 ---------------------------------------------------------

// 1 - cos where the target is 1, max(0, cos - margin) where it is -1. Inputs are [N, D] with target [N], or [D] with a
// scalar target.
Tensor cosine_embedding_loss(Operand input1, Operand input2, Operand target, double margin = 0,
                             Reduction reduction = Reduction::Mean);
// x where the target is 1, max(0, margin - x) where it is -1.
Tensor hinge_embedding_loss(Operand input, Operand target, double margin = 1, Reduction reduction = Reduction::Mean);
// max(0, -t (x1 - x2) + margin).
Tensor margin_ranking_loss(Operand input1, Operand input2, Operand target, double margin = 0,
                           Reduction reduction = Reduction::Mean);
// log(1 + exp(-t x)), computed without overflow.
Tensor soft_margin_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean);
struct TripletMarginOptions {
  double margin = 1;
  double p = 2;  // exponent of the norm
  double eps = 1e-6;
  bool swap = false;  // use the smaller of the negative's distances to anchor and positive
  Reduction reduction = Reduction::Mean;
};
// max(0, |a - p + eps| - |a - n + eps| + margin) for three inputs [N, D] or [D], with norms over the last axis.
Tensor triplet_margin_loss(Operand anchor, Operand positive, Operand negative, const TripletMarginOptions& o = {});

// ---- class scores [N, C] or [C] -------------------------------------------------------------------
struct MultiMarginOptions {
  double p = 1;  // 1 or 2
  double margin = 1;
  Tensor weight = {};  // per class, floating [C]
  Reduction reduction = Reduction::Mean;
};
// The mean over classes of weight[target] max(0, margin - x[target] + x[class])^p, where the target's own term is 0.
// Targets are class indices, integers [N] or [].
Tensor multi_margin_loss(Operand input, Operand target, const MultiMarginOptions& o = {});
// The sum of max(0, 1 - (x[label] - x[class])) over all pairs of a label and a class that is not a label, divided by C.
// Targets are lists of labels: integers of input's shape, which end before the first negative number.
Tensor multilabel_margin_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean);
struct MultilabelSoftMarginOptions {
  Tensor weight = {};  // broadcasts to the shape of input
  Reduction reduction = Reduction::Mean;
};
// binary_cross_entropy_with_logits, averaged over the last axis. Targets are 0 or 1, of input's shape.
Tensor multilabel_soft_margin_loss(Operand input, Operand target, const MultilabelSoftMarginOptions& o = {});

// ---- sequences ---------------------------------------------------------------------------------------
struct CtcOptions {
  std::int64_t blank = 0;
  Reduction reduction = Reduction::Mean;  // Mean divides each loss by its target's length, at least 1
  bool zero_infinity = false;             // targets too long for their input cost 0, not infinity
};
// Connectionist temporal classification (Graves, Fernandez, Gomez and Schmidhuber 2006; the forward recursion of
// section 4.1, in logarithms). log_probs is [T, N, C] (or [T, C]), where T is a number; targets [N, S] (or [S]) are
// integers, with arbitrary padding after their length; input_lengths and target_lengths [N] (or []) are integers at
// most T and S. The result before reduction is [N] (or []). The derivative is that of the formula; PyTorch's equals it
// only after log_softmax.
Tensor ctc_loss(Operand log_probs, Operand targets, Operand input_lengths, Operand target_lengths,
                const CtcOptions& o = {});

}  // namespace lc
#include "lightcone/macros_on.h"
