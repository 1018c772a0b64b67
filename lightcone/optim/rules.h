// What the update rules of optimisers are written with.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/ops/ops.h"
#include "lightcone/optim/optim.h"

namespace lc::optim {

inline Tensor minus(const Tensor& a, const Tensor& b) { return prim::add(a, prim::mul(b, full_like(b, -1))); }
inline Tensor scaled(const Tensor& a, double v) { return prim::mul(a, full_like(a, v)); }
inline Tensor plus(const Tensor& a, double v) { return prim::add(a, full_like(a, v)); }
// a + weight (b - a): a weight of 1 - beta makes it beta a + (1 - beta) b.
inline Tensor moved(const Tensor& a, const Tensor& b, double weight) {
  return prim::add(a, scaled(minus(b, a), weight));
}

// Makes `state` what `next` is after the run, or leaves it where `when` (undefined: always) is false; gives which.
Tensor assign_when(const Tensor& when, const Tensor& state, const Tensor& next);
void check_update(const Update& u, const char* op);  // Errors: what is no input, types, shapes, graphs
void must_be_scalar(const Tensor& t, const Graph& g, const char* op, const char* what, bool right_type,
                    const char* type);
Tensor broadcast_to(const Tensor& scalar, const Shape& shape);  // a scalar spread over a shape
const std::string& name_of(const Tensor& parameter);
inline DType wide(DType t) { return is_narrow(t) ? DType::F32 : t; }

// The scalars of one step, for the parameters of one group.
struct StepState {
  std::string name;
  Tensor done, first, when;     // i64: the steps before this one; bool: there was none; bool or undefined
  Tensor t, lr;                 // f64: the number of this step, from 1; the rate
  std::vector<Tensor>* states;  // the inputs that were made

  Tensor number(double v) const { return full_like(t, v); }
  Tensor power(double base) const { return prim::pow(number(base), t); }    // base^t
  Tensor bias(double beta) const { return minus(number(1), power(beta)); }  // 1 - beta^t
  Tensor zero_state(const std::string& name, const Shape& shape, DType dtype) const;
};

// One parameter in one step, in the type that its update is computed in.
class ParameterUpdate {
 public:
  ParameterUpdate(const StepState& step, const Update& u);

  const Tensor& p() const { return p_; }
  const Tensor& g() const { return g_; }
  Tensor spread(const Tensor& scalar) const;  // an f64 or bool scalar over the parameter's shape, a number as its type
  Tensor state(const std::string& suffix);    // "<parameter>.suffix", of the parameter's shape
  Tensor keep(const Tensor& state, const Tensor& next) const { return assign_when(step_.when, state, next); }
  // The same, written behind the parameter's next value, which reads what the state was: so it is overwritten in place.
  void assign_after(const Tensor& state, std::function<Tensor()> next) { behind_.emplace_back(state, std::move(next)); }
  Tensor finish(const Tensor& parameter,
                const Tensor& next) const;  // assigns what the rule gave, and what waits for it
  void apply_sign_and_decay(bool maximize,
                            double weight_decay);  // the gradient, or its negative, and the decay that is added to it
  void decay_parameter(double weight_decay);       // the parameter, by lr weight_decay
  const StepState& step() const { return step_; }
  const std::string& name() const { return name_; }

 private:
  const StepState& step_;
  std::string name_;
  Tensor p_, g_;
  std::vector<std::pair<Tensor, std::function<Tensor()>>> behind_;
};

// How one parameter is updated: gives its next value, in the type of slot.p().
using Rule = std::function<Tensor(ParameterUpdate& slot)>;
// Checks the options and writes what the parameters of a group share.
Rule rule(const SGD& o, const StepState& c);
Rule rule(const Adam& o, const StepState& c);
Rule rule(const AdamW& o, const StepState& c);
Rule rule(const RMSprop& o, const StepState& c);
Rule rule(const Adagrad& o, const StepState& c);
Rule rule(const Adadelta& o, const StepState& c);
Rule rule(const NAdam& o, const StepState& c);
Rule rule(const RAdam& o, const StepState& c);
Rule rule(const Lion& o, const StepState& c);
Rule rule(const LAMB& o, const StepState& c);
Rule rule(const Muon& o, const StepState& c);

// Errors of options: "Adam: beta1 is 1; it lies in [0, 1)".
void not_negative(double v, const char* op, const char* option);
void below_one(double v, const char* op, const char* option);

}  // namespace lc::optim
