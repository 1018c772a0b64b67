// Optimisers as values that append their update to the graph. Names, formulas, options and defaults are those of
// torch.optim (PyTorch 2.15) where it has the algorithm.
//
//   const optim::Step s = optim::step(optim::AdamW{.lr = 3e-4}, {{w, dw}, {b, db}});
//
// Every parameter is an input of the graph and becomes a state: after a run it holds its next value. An optimiser's
// memory is kept in further states, named as in PyTorch's state_dict ("<parameter>.exp_avg"), which a context
// initialises to zero. An i64 state counts the steps. Scalars that depend only on the step (a bias correction, a
// scheduled rate) are computed once per run, in f64.
//
// Parameters are floating. 16-bit parameters (f16, bf16) are updated in f32 with f32 states (PyTorch's have the
// parameter's type), and the next value is rounded once.
//
// Every function throws Error when called if shapes or types do not fit or an option is invalid.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/ops/loss.h"

namespace lc::optim {

// Notation for all optimisers: g is the gradient (its negative if `maximize`), t counts steps from 1. Unless noted,
// weight_decay is added to the gradient: g + weight_decay p. Decoupled decay scales the parameter: p (1 - lr
// weight_decay).

// torch.optim.SGD: p - lr g. With momentum, b = momentum b + (1 - dampening) g, with b = g in the first step:
// p - lr b, or with nesterov p - lr (g + momentum b). State: momentum_buffer.
struct SGD {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
// torch.optim.Adam (Kingma and Ba 2015; amsgrad: Reddi, Kale and Kumar 2018):
// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
// p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps). amsgrad uses the largest v so far.
// States: exp_avg, exp_avg_sq, and max_exp_avg_sq for amsgrad.
struct Adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
// torch.optim.AdamW (Loshchilov and Hutter 2019): Adam with decoupled weight decay.
struct AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  bool amsgrad = false, maximize = false;
};
// torch.optim.RMSprop, or keras.optimizers.RMSprop: v = alpha v + (1 - alpha) g^2.
// If centered, a = alpha a + (1 - alpha) g, and v - a^2 replaces v. Both start at 0.
//   PyTorch:    d = g / (sqrt(v) + eps), with momentum b = momentum b + d, d = b;      p - lr d
//   TensorFlow: d = lr g / sqrt(v + eps), with momentum b = momentum b + d, d = b;     p - d
// States: square_avg; grad_avg if centered; momentum_buffer with momentum.
struct RMSprop {
  enum class Convention : std::uint8_t { PyTorch, TensorFlow };
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
  Convention convention = Convention::PyTorch;
};
// torch.optim.Adagrad: s = s + g^2, starting at initial_accumulator_value, and p - lr / (1 + (t - 1) lr_decay) g /
// (sqrt(s) + eps). State: sum.
struct Adagrad {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
// torch.optim.Adadelta: v = rho v + (1 - rho) g^2, d = g sqrt(u + eps) / sqrt(v + eps), u = rho u + (1 - rho) d^2, and
// p - lr d. States: square_avg, acc_delta.
struct Adadelta {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
// torch.optim.NAdam (Dozat 2016): Adam with Nesterov's momentum. States: exp_avg, exp_avg_sq, and one f64 scalar
// "<name>.mu_product" for all parameters of a call (PyTorch has one per parameter).
struct NAdam {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false;
};
// torch.optim.RAdam (Liu et al. 2020): Adam with rectified variance, which is not used in the first steps. States:
// exp_avg, exp_avg_sq.
struct RAdam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;
};
// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2):
// c = beta1 m + (1 - beta1) g, p - lr (sign(c) + weight_decay p), then m = beta2 m + (1 - beta2) g. State: exp_avg.
struct Lion {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};
// LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2, phi(z) = z):
// u = m / (sqrt(v) + eps) + weight_decay p with Adam's bias-corrected m and v,
// p - lr |p| / |u| u, or p - lr u if a norm is 0. States: exp_avg, exp_avg_sq.
struct LAMB {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
// torch.optim.Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon), for matrices of known size:
// b = momentum b + (1 - momentum) g; u = b, or with nesterov (1 - momentum) g + momentum b.
// ns_steps iterations X = a X + (b G + c G G) X, G = X X^T, from X = u / max(|u|, eps), bring u near the nearest
// orthogonal matrix. The result is p (1 - lr weight_decay) - lr r u
// with r = sqrt(max(1, rows / columns)) (Original) or 0.2 sqrt(max(rows, columns)) (MatchRmsAdamW).
// PyTorch iterates in bf16; here the iteration has the precision of the state and of the program's products. State:
// momentum_buffer.
struct Muon {
  enum class AdjustLr : std::uint8_t { Original, MatchRmsAdamW };
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95, eps = 1e-7;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};
  int ns_steps = 5;
  AdjustLr adjust_lr_fn = AdjustLr::Original;
};

using Optimizer = std::variant<SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, NAdam, RAdam, Lion, LAMB, Muon>;

// A parameter and its gradient: floating tensors of one shape. The parameter must be an input, not a view of one.
struct Update {
  Tensor parameter, gradient;
};
// Parameters with their own optimiser options.
struct Group {
  Optimizer optimizer;
  std::vector<Update> updates;
  Tensor lr = {};  // a floating scalar that replaces the optimiser's lr, e.g. from a schedule
};

struct StepOptions {
  Tensor lr = {};    // for groups without their own
  Tensor step = {};  // an existing counter(); otherwise "<name>.step" is created
  // A bool scalar. If false, parameters, states and the created counter keep their values.
  Tensor when = {};
  std::string_view name = "optim";
};
// The tensors and states of a step.
struct Step {
  Tensor step;                     // i64 scalar: number of steps done before this run
  Tensor when;                     // copied from StepOptions
  std::vector<Tensor> parameters;  // parameters of all groups, in order
  std::vector<Tensor> next;        // the parameters' values after the run
  std::vector<Tensor> states;      // inputs to save for resuming, including the counter
};

// Appends an optimiser step: assigns the next values of all parameters and of the optimiser's states. Throws Error if
// there are no parameters, if they belong to different graphs, or if a scalar option has the wrong type.
Step step(const std::vector<Group>& groups, const StepOptions& o = {}, const Tensor::At& at = Tensor::At::current());
// Does the same for one group.
Step step(const Optimizer& optimizer, const std::vector<Update>& updates, const StepOptions& o = {},
          const Tensor::At& at = Tensor::At::current());

// Adds an i64 scalar state that is 0 in the first run and increases by one after each run, or after each in which
// `when` is true.
Tensor counter(Graph& g, std::string_view name = "optim.step", const Tensor& when = {},
               const Tensor::At& at = Tensor::At::current());

// ---- gradients, before a step ----------------------------------------------------------------------

struct Clipped {
  std::vector<Update> updates;  // gradients of 16-bit floats are f32
  Tensor norm;                  // scalar: norm of all gradients before clipping
};
// torch.nn.utils.clip_grad_norm_: multiplies all gradients by min(1, max_norm / (norm + 1e-6)), where norm is that of
// all elements as one vector. norm_type is positive or infinity.
Clipped clip_grad_norm(const std::vector<Update>& updates, double max_norm, double norm_type = 2,
                       const Tensor::At& at = Tensor::At::current());
// torch.nn.utils.clip_grad_value_: clamps each element to [-clip_value, clip_value].
std::vector<Update> clip_grad_value(const std::vector<Update>& updates, double clip_value,
                                    const Tensor::At& at = Tensor::At::current());

struct Accumulated {
  std::vector<Update> updates;  // gradients accumulated since the last step, including this run's
  Tensor when;                  // bool scalar: true in every runs-th run
};
// Accumulates gradients over `runs` runs: summed (Reduction::Sum, like backward()) or averaged (Mean), for a step in
// every runs-th run: step(o, a.updates, {.when = a.when}). It adds the states "<parameter>.accumulated_grad" and the
// i64 scalar "<name>.accumulated_runs", which a checkpoint between steps must contain.
Accumulated accumulate(const std::vector<Update>& updates, int runs, Reduction reduction = Reduction::Sum,
                       std::string_view name = "optim", const Tensor::At& at = Tensor::At::current());

// ---- averages of parameters, after a step ------------------------------------------------------------

// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay). The states "<parameter>.ema" hold the
// parameters after the first step, then decay ema + (1 - decay) p. Returns their next values.
std::vector<Tensor> ema(const Step& s, double decay = 0.999, const Tensor::At& at = Tensor::At::current());
// torch.optim.swa_utils.AveragedModel with get_swa_multi_avg_fn(). The states "<parameter>.swa" hold the mean of the
// parameters after step `start` (counted from 0) and every `every`-th later step. Returns their next values.
std::vector<Tensor> swa(const Step& s, std::int64_t start = 0, std::int64_t every = 1,
                        const Tensor::At& at = Tensor::At::current());

}  // namespace lc::optim
