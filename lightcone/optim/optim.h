// Optimisers as values that append their update to the graph: names, formulas, options and defaults are torch.optim's
// (PyTorch 2.15), where it has the algorithm.
//
//   const optim::Step s = optim::step(optim::AdamW{.lr = 3e-4}, {{w, dw}, {b, db}});
//
// Every parameter is an input of the graph and a state from then on: after a run it holds its next value. What an
// optimiser remembers are states beside it, named as in PyTorch's state_dict ("<parameter>.exp_avg"), which a context
// sets to zero. Steps are counted by an i64 state; what depends on their number alone (a bias correction, a rate from a
// schedule) is computed once a run, in f64.
//
// Parameters are floating. Those of halves (f16, bf16) are updated in f32, their states are f32 (PyTorch's have the
// parameter's type), and the next value is rounded once.
//
// Every function throws an lc::Error, when it is called, where shapes or types do not fit or an option makes no sense.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/ops/loss.h"

namespace lc::optim {

// In all of them: g is the gradient (its negative where `maximize`), t counts steps from 1. Where nothing else is said
// weight_decay is added to the gradient, g + weight_decay p; decoupled, it is taken from the parameter, p (1 - lr
// weight_decay).

// torch.optim.SGD. With momentum: b = momentum b + (1 - dampening) g, b = g in the first step; p - lr b, or with
// nesterov p - lr (g + momentum b). State: momentum_buffer.
struct SGD {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
// torch.optim.Adam (Kingma and Ba 2015; amsgrad: Reddi, Kale and Kumar 2018).
// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2;
// p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps), with the largest v so far for amsgrad.
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
// torch.optim.RMSprop, or keras.optimizers.RMSprop. v = alpha v + (1 - alpha) g^2, and centered: a = alpha a + (1 -
// alpha) g, v - a^2 in place of v. Both begin at 0.
//   PyTorch:    d = g / (sqrt(v) + eps), with momentum b = momentum b + d, d = b;      p - lr d
//   TensorFlow: d = lr g / sqrt(v + eps), with momentum b = momentum b + d, d = b;     p - d
// States: square_avg, and grad_avg, momentum_buffer where they are wanted.
struct RMSprop {
  enum class Convention : std::uint8_t { PyTorch, TensorFlow };
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
  Convention convention = Convention::PyTorch;
};
// torch.optim.Adagrad: s = s + g^2, s = initial_accumulator_value before the first step;
// p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps). State: sum.
struct Adagrad {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
// torch.optim.Adadelta: v = rho v + (1 - rho) g^2, d = g sqrt(u + eps) / sqrt(v + eps), u = rho u + (1 - rho) d^2;
// p - lr d. States: square_avg, acc_delta.
struct Adadelta {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
// torch.optim.NAdam (Dozat 2016): Adam with Nesterov's momentum. States: exp_avg, exp_avg_sq, and for all parameters of
// a call one f64 scalar "<name>.mu_product" (in PyTorch one for each).
struct NAdam {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false;
};
// torch.optim.RAdam (Liu et al. 2020): Adam whose variance is rectified, and not used in the first steps. States:
// exp_avg, exp_avg_sq.
struct RAdam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;
};
// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2): c = beta1 m + (1 - beta1) g,
// p - lr (sign(c) + weight_decay p), then m = beta2 m + (1 - beta2) g. State: exp_avg.
struct Lion {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};
// LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2, phi(z) = z): with Adam's m and v
// corrected for their bias, u = m / (sqrt(v) + eps) + weight_decay p; p - lr |p| / |u| u, and p - lr u where a norm is
// 0. States: exp_avg, exp_avg_sq.
struct LAMB {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
// torch.optim.Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon), for matrices of known size:
// b = momentum b + (1 - momentum) g, u = b, or with nesterov (1 - momentum) g + momentum b; u is brought near the
// nearest orthogonal matrix by ns_steps of X = a X + (b G + c G G) X, G = X X^T, from X = u / max(|u|, eps); p (1 - lr
// weight_decay) - lr r u with r = sqrt(max(1, rows / columns)) (Original) or 0.2 sqrt(max(rows, columns))
// (MatchRmsAdamW). PyTorch computes the iteration in bf16; here it has the precision of the state, and of the products
// that the program is compiled with. State: momentum_buffer.
struct Muon {
  enum class AdjustLr : std::uint8_t { Original, MatchRmsAdamW };
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95, eps = 1e-7;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};
  int ns_steps = 5;
  AdjustLr adjust_lr_fn = AdjustLr::Original;
};

using Optimizer = std::variant<SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, NAdam, RAdam, Lion, LAMB, Muon>;

// A parameter, which is an input read as it is, and its gradient: floating, of the same shape.
struct Update {
  Tensor parameter, gradient;
};
// Parameters with options of their own.
struct Group {
  Optimizer optimizer;
  std::vector<Update> updates;
  Tensor lr = {};  // a floating scalar in place of the optimiser's number, for example from a schedule
};

struct StepOptions {
  Tensor lr = {};    // for groups without one of their own
  Tensor step = {};  // a counter() that others read, too; without one "<name>.step" is made
  Tensor when =
      {};  // a bool scalar: where it is false parameters, states and the counter that is made stay as they are
  std::string_view name = "optim";
};
// What step() has written.
struct Step {
  Tensor step;                     // i64 scalar: how many steps were done before this run
  Tensor when;                     // as it was given
  std::vector<Tensor> parameters;  // of all groups, in order
  std::vector<Tensor> next;        // what each will hold after the run
  std::vector<Tensor> states;      // inputs: what is saved with them to go on later, the counter included
};

// Assigns to each parameter its next value, and to the optimiser's states theirs.
Step step(const std::vector<Group>& groups, const StepOptions& o = {}, const Tensor::At& at = Tensor::At::current());
Step step(const Optimizer& optimizer, const std::vector<Update>& updates, const StepOptions& o = {},
          const Tensor::At& at = Tensor::At::current());

// An i64 scalar state that is 0 in the first run and one more after each run, or after each in which `when` is true.
Tensor counter(Graph& g, std::string_view name = "optim.step", const Tensor& when = {},
               const Tensor::At& at = Tensor::At::current());

// ---- gradients, before a step ----------------------------------------------------------------------

struct Clipped {
  std::vector<Update> updates;  // gradients of halves are f32
  Tensor norm;                  // a scalar: of all gradients as they were
};
// torch.nn.utils.clip_grad_norm_: all gradients times min(1, max_norm / (norm + 1e-6)), where norm is that of all their
// elements as one vector; norm_type > 0, or infinity.
Clipped clip_grad_norm(const std::vector<Update>& updates, double max_norm, double norm_type = 2,
                       const Tensor::At& at = Tensor::At::current());
// torch.nn.utils.clip_grad_value_: each element between -clip_value and clip_value.
std::vector<Update> clip_grad_value(const std::vector<Update>& updates, double clip_value,
                                    const Tensor::At& at = Tensor::At::current());

struct Accumulated {
  std::vector<Update> updates;  // gradients of this run and of those before it since the last step
  Tensor when;                  // bool scalar: true in every runs-th run
};
// Gradients added up (Reduction::Sum, as backward() adds them) or averaged (Mean) over `runs` runs, for a step in every
// runs-th one: step(o, a.updates, {.when = a.when}). States, which are part of what is saved in between:
// "<parameter>.accumulated_grad" and the i64 scalar
// "<name>.accumulated_runs".
Accumulated accumulate(const std::vector<Update>& updates, int runs, Reduction reduction = Reduction::Sum,
                       std::string_view name = "optim", const Tensor::At& at = Tensor::At::current());

// ---- averages of parameters, behind a step -----------------------------------------------------------

// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay): states "<parameter>.ema" that hold the
// parameters after the first step, and from then on decay ema + (1 - decay) p. Gives their next values.
std::vector<Tensor> ema(const Step& s, double decay = 0.999, const Tensor::At& at = Tensor::At::current());
// The same with get_swa_multi_avg_fn(): states "<parameter>.swa", the mean of the parameters after step `start`
// (counted from 0) and every `every`-th one behind it.
std::vector<Tensor> swa(const Step& s, std::int64_t start = 0, std::int64_t every = 1,
                        const Tensor::At& at = Tensor::At::current());

}  // namespace lc::optim
