// The losses of torch.nn.functional, written in the twelve: names, meanings, defaults and the order of options are
// PyTorch's. A loss of halves (f16, bf16) is computed in f32, its sum or mean included, and rounded once.
//
// What is compared must be floating and have one shape: PyTorch broadcasts some of these with a warning that the result
// is likely wrong ([N] against [N, 1] is [N, N]); here that is an Error. What depends on data never throws: a class
// that does not exist makes its loss NaN, a probability outside of [0, 1] makes its logarithm NaN.
//
// Every function throws an lc::Error when shapes or element types do not fit or an option makes no sense.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>

#include "lightcone/ops/ops.h"

namespace lc {

// What is made of the losses of all elements. The mean of no elements is NaN, as in PyTorch.
enum class Reduction : std::uint8_t {
  None,       // they are returned
  Mean,       // of all elements, where nothing else is said
  Sum,        // a scalar
  BatchMean,  // kl_div alone: the sum divided by the extent of axis 0
};

// ---- of numbers: input and target of one shape --------------------------------------------------
Tensor mse_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean);  // (x - t)^2
Tensor l1_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean);   // |x - t|
// With d = |x - t|: d^2 / 2 below delta, delta (d - delta / 2) from there on; delta > 0.
Tensor huber_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean, double delta = 1);
// With d = |x - t|: d^2 / (2 beta) below beta, d - beta / 2 from there on; beta 0 is l1_loss.
Tensor smooth_l1_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean, double beta = 1);

// ---- of classes --------------------------------------------------------------------------------
struct CrossEntropyOptions {
  Tensor weight = {};                // of each class, floating [C]
  std::int64_t ignore_index = -100;  // targets of this class count neither in the sum nor in the mean
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;  // in [0, 1]: this part of the target is spread evenly over the classes
};
// Logits [C], [N, C] or [N, C, d1, ...]. Targets are either classes, integers of the same shape without C, or
// probabilities, floating of the same shape. The mean of classes is weighted: divided by the sum of their weights; that
// of probabilities is divided by the number of targets. Computed as log(sum(exp(x - max x))) - (x[class] - max x),
// which neither overflows nor loses small losses. A probability of 0 times a logarithm of -inf is 0 (PyTorch: NaN).
Tensor cross_entropy(Operand input, Operand target, const CrossEntropyOptions& o = {});
struct NllOptions {
  Tensor weight = {};
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
};
// The same of logarithms of probabilities (log_softmax) and classes: -weight[class] x[class].
Tensor nll_loss(Operand input, Operand target, const NllOptions& o = {});

struct BinaryCrossEntropyOptions {
  Tensor weight = {};  // broadcasts to the shape of input
  Reduction reduction = Reduction::Mean;
};
// -(t log x + (1 - t) log(1 - x)) of probabilities x; logarithms are at least -100, as PyTorch's are.
Tensor binary_cross_entropy(Operand input, Operand target, const BinaryCrossEntropyOptions& o = {});
struct BinaryCrossEntropyWithLogitsOptions {
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
  Tensor pos_weight = {};  // of the positive part; broadcasts to the shape of input
};
// -(p t log s(x) + (1 - t) log(1 - s(x))) of logits x, s the sigmoid, p pos_weight. The terms are added as
// numbers of one sign, so that a small loss keeps its digits.
Tensor binary_cross_entropy_with_logits(Operand input, Operand target,
                                        const BinaryCrossEntropyWithLogitsOptions& o = {});

// ---- of distributions -----------------------------------------------------------------------------
// t (log t - x) of logarithms x and probabilities t, or exp(t) (t - x) where t are logarithms, too. Where t is 0 (or
// log_target and t -inf) the loss is 0, whatever x is (PyTorch: NaN where x is -inf).
Tensor kl_div(Operand input, Operand target, Reduction reduction = Reduction::Mean, bool log_target = false);
struct GaussianNllOptions {
  bool full = false;  // with the constant log(2 pi) / 2
  double eps = 1e-6;  // the least variance; > 0
  Reduction reduction = Reduction::Mean;
};
// (log v + (x - t)^2 / v) / 2 with v = max(var, eps). var has the shape of input, the same with an axis of extent 1, or
// the same without the last axis. A negative variance, an Error in PyTorch, counts as eps.
Tensor gaussian_nll_loss(Operand input, Operand target, Operand var, const GaussianNllOptions& o = {});
struct PoissonNllOptions {
  bool log_input = true;  // exp(x) - t x; otherwise x - t log(x + eps)
  bool full = false;      // with Stirling's t log t - t + log(2 pi t) / 2 where t > 1
  double eps = 1e-8;
  Reduction reduction = Reduction::Mean;
};
Tensor poisson_nll_loss(Operand input, Operand target, const PoissonNllOptions& o = {});

// ---- of pairs and triples; targets are 1 or -1 ------------------------------------------------------
// [N, D] twice with target [N], or [D] twice with a target of no axes: 1 - cos where the target is 1,
// max(0, cos - margin) where it is -1.
Tensor cosine_embedding_loss(Operand input1, Operand input2, Operand target, double margin = 0,
                             Reduction reduction = Reduction::Mean);
// x where the target is 1, max(0, margin - x) where it is -1.
Tensor hinge_embedding_loss(Operand input, Operand target, double margin = 1, Reduction reduction = Reduction::Mean);
// max(0, -t (x1 - x2) + margin).
Tensor margin_ranking_loss(Operand input1, Operand input2, Operand target, double margin = 0,
                           Reduction reduction = Reduction::Mean);
// log(1 + exp(-t x)), which does not overflow.
Tensor soft_margin_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean);
struct TripletMarginOptions {
  double margin = 1;
  double p = 2;  // of the norm
  double eps = 1e-6;
  bool swap = false;  // the negative's distance is the smaller of those to the anchor and to the positive
  Reduction reduction = Reduction::Mean;
};
// [N, D] or [D] three times: max(0, |a - p + eps| - |a - n + eps| + margin), the norm over the last axis.
Tensor triplet_margin_loss(Operand anchor, Operand positive, Operand negative, const TripletMarginOptions& o = {});

// ---- of scores of classes [N, C] or [C] -----------------------------------------------------------
struct MultiMarginOptions {
  double p = 1;  // 1 or 2
  double margin = 1;
  Tensor weight = {};  // of each class, floating [C]
  Reduction reduction = Reduction::Mean;
};
// The mean over the classes, the target's own counting 0, of weight[target] max(0, margin - x[target] + x[class])^p.
// Targets are classes, integers [N] or [].
Tensor multi_margin_loss(Operand input, Operand target, const MultiMarginOptions& o = {});
// Of all pairs of a label and a class that is none: max(0, 1 - (x[label] - x[class])), their sum divided by C. Targets
// are lists of labels, integers of input's shape, which end before the first negative number.
Tensor multilabel_margin_loss(Operand input, Operand target, Reduction reduction = Reduction::Mean);
struct MultilabelSoftMarginOptions {
  Tensor weight = {};  // broadcasts to the shape of input
  Reduction reduction = Reduction::Mean;
};
// binary_cross_entropy_with_logits, the mean over the last axis. Targets are 0 or 1, of input's shape.
Tensor multilabel_soft_margin_loss(Operand input, Operand target, const MultilabelSoftMarginOptions& o = {});

// ---- of sequences ------------------------------------------------------------------------------------
struct CtcOptions {
  std::int64_t blank = 0;
  Reduction reduction = Reduction::Mean;  // Mean: of the losses divided by the target's length, or by 1 if that is 0
  bool zero_infinity = false;             // a target that cannot be said in the time there is costs 0, not infinity
};
// Connectionist temporal classification (Graves, Fernandez, Gomez and Schmidhuber 2006; the forward recursion of
// section 4.1, in logarithms). log_probs [T, N, C] (or [T, C]), T a number; targets [N, S] (or [S]), integers, padded
// with anything behind their length; input_lengths and target_lengths [N] (or []), integers at most T and S. Result [N]
// (or []) before the reduction. The derivative is that of the formula; PyTorch's own is the same behind log_softmax
// alone.
Tensor ctc_loss(Operand log_probs, Operand targets, Operand input_lengths, Operand target_lengths,
                const CtcOptions& o = {});

}  // namespace lc
#include "lightcone/macros_on.h"
