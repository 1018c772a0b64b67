// Learning rates as graph code: a schedule maps the number of completed steps, an i64 scalar, to the rate of the next
// one, an f64 scalar. Formulas, options and defaults are the closed forms of torch.optim.lr_scheduler, with the
// optimiser's own rate as the first argument.
//
//   const Tensor done = optim::counter(g);
//   const Tensor lr = optim::warm_up(optim::cosine_annealing(3e-4, 1000), 100)(done);
//   optim::step(optim::AdamW{}, updates, {.lr = lr, .step = done});
//
// Every function throws Error if a number is out of range.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lightcone/core/tensor.h"

namespace lc::optim {

class Schedule {
 public:
  using Formula = std::function<Tensor(const Tensor& steps)>;  // i64 [] -> f64 []
  explicit Schedule(Formula f) : formula_(std::move(f)) {}
  // Returns the rate for `steps` completed steps. Throws Error unless `steps` is an i64 scalar.
  Tensor operator()(Operand steps) const;

 private:
  Formula formula_;
};

// The rate lr in every step. Below, t is the number of completed steps.
Schedule constant(double lr);
// StepLR: lr gamma^floor(t / step_size).
Schedule step_lr(double lr, std::int64_t step_size, double gamma = 0.1);
// MultiStepLR: lr gamma^k, where k is the number of milestones <= t. Milestones may be in any order.
Schedule multi_step(double lr, std::vector<std::int64_t> milestones, double gamma = 0.1);
// ExponentialLR: lr gamma^t.
Schedule exponential(double lr, double gamma);
// LinearLR: lr (start + (end - start) min(t, total_iters) / total_iters).
Schedule linear(double lr, double start_factor = 1.0 / 3, double end_factor = 1, std::int64_t total_iters = 5);
// PolynomialLR: lr (1 - min(t, total_iters) / total_iters)^power.
Schedule polynomial(double lr, std::int64_t total_iters = 5, double power = 1);
// CosineAnnealingLR: eta_min + (lr - eta_min) (1 + cos(pi t / t_max)) / 2. The rate rises again after t_max.
Schedule cosine_annealing(double lr, std::int64_t t_max, double eta_min = 0);
// CosineAnnealingWarmRestarts: cosine annealing over t_0 steps, restarted for t_0 t_mult steps, and so on.
Schedule cosine_annealing_warm_restarts(double lr, std::int64_t t_0, std::int64_t t_mult = 1, double eta_min = 0);
enum class Anneal : std::uint8_t { Cos, Linear };
struct OneCycle {
  double pct_start = 0.3;  // fraction of the steps in which the rate rises, in [0, 1]
  Anneal anneal_strategy = Anneal::Cos;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
// OneCycleLR: rises from max_lr / div_factor to max_lr, then falls to that first rate / final_div_factor, in
// total_steps. With three phases it falls to the first rate as fast as it rose, and then to the last. After
// total_steps, where PyTorch raises an error, the rate stays at the last.
Schedule one_cycle(double max_lr, std::int64_t total_steps, const OneCycle& o = {});

// SequentialLR: schedules[0] before milestones[0], then schedules[1] of t - milestones[0], and so on.
Schedule sequential(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones);
// LinearLR from start_factor to 1 times the first rate of `then`, over `steps` steps, followed by `then`.
Schedule warm_up(const Schedule& then, std::int64_t steps, double start_factor = 1.0 / 3);

// ReduceLROnPlateau. It depends on a metric measured by the host, so it is not graph code: step(metric) returns the
// rate to set as the input that is the `lr` of step().
class ReduceOnPlateau {
 public:
  enum class Mode : std::uint8_t { Min, Max };
  enum class Threshold : std::uint8_t { Rel, Abs };
  struct Options {
    Mode mode = Mode::Min;
    double factor = 0.1;
    std::int64_t patience = 10;  // tolerated steps without an improvement
    double threshold = 1e-4;     // minimal improvement
    Threshold threshold_mode = Threshold::Rel;
    std::int64_t cooldown = 0;      // steps after a reduction that are not counted
    double min_lr = 0, eps = 1e-8;  // smaller reductions than eps are skipped
  };
  explicit ReduceOnPlateau(double lr) : ReduceOnPlateau(lr, Options{}) {}
  ReduceOnPlateau(double lr, const Options& o);

  double step(double metric);  // returns the rate to use from now on
  double lr() const { return lr_; }

 private:
  bool improves(double metric) const;

  Options o_;
  double lr_, best_;
  std::int64_t bad_ = 0, cooling_ = 0;
};

}  // namespace lc::optim
