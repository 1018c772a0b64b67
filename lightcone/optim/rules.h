// Helpers for writing update rules of optimisers.
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
// Returns a + weight (b - a); a weight of 1 - beta gives beta a + (1 - beta) b.
inline Tensor moved(const Tensor& a, const Tensor& b, double weight) {
  return prim::add(a, scaled(minus(b, a), weight));
}

// Assigns `next` to `state`, or keeps it where `when` (undefined: always true) is false. Returns the new value.
Tensor assign_when(const Tensor& when, const Tensor& state, const Tensor& next);
void check_update(const Update& u, const char* op);  // throws Error: not an input, types, shapes, graphs
void must_be_scalar(const Tensor& t, const Graph& g, const char* op, const char* what, bool right_type,
                    const char* type);
Tensor broadcast_to(const Tensor& scalar, const Shape& shape);  // expands a scalar to a shape
const std::string& name_of(const Tensor& parameter);
inline DType wide(DType t) { return is_narrow(t) ? DType::F32 : t; }

// The scalars of one step for the parameters of one group.
struct StepState {
  std::string name;
  Tensor done, first, when;     // i64: steps before this one; bool: done == 0; bool or undefined
  Tensor t, lr;                 // f64: number of this step, from 1; learning rate
  std::vector<Tensor>* states;  // states added by the step

  Tensor number(double v) const { return full_like(t, v); }
  Tensor power(double base) const { return prim::pow(number(base), t); }    // base^t
  Tensor bias(double beta) const { return minus(number(1), power(beta)); }  // 1 - beta^t
  Tensor zero_state(const std::string& name, const Shape& shape, DType dtype) const;
};

// A parameter in one step, in the type in which its update is computed.
class ParameterUpdate {
 public:
  ParameterUpdate(const StepState& step, const Update& u);

  const Tensor& p() const { return p_; }
  const Tensor& g() const { return g_; }
  Tensor spread(const Tensor& scalar) const;  // expands an f64 or bool scalar to p's shape; casts f64 to p's type
  Tensor state(const std::string& suffix);    // adds "<parameter>.suffix" with the parameter's shape
  Tensor keep(const Tensor& state, const Tensor& next) const { return assign_when(step_.when, state, next); }
  // Like keep(), but assigned after the parameter, whose next value reads the old state: the update is in place.
  void assign_after(const Tensor& state, std::function<Tensor()> next) { behind_.emplace_back(state, std::move(next)); }
  // Assigns the rule's result and the values from assign_after().
  Tensor finish(const Tensor& parameter, const Tensor& next) const;
  // Negates the gradient if `maximize`, then adds weight_decay times the parameter.
  void apply_sign_and_decay(bool maximize, double weight_decay);
  void decay_parameter(double weight_decay);  // scales the parameter by 1 - lr weight_decay
  const StepState& step() const { return step_; }
  const std::string& name() const { return name_; }

 private:
  const StepState& step_;
  std::string name_;
  Tensor p_, g_;
  std::vector<std::pair<Tensor, std::function<Tensor()>>> behind_;
};

// The update of one parameter: returns its next value, in the type of slot.p().
using Rule = std::function<Tensor(ParameterUpdate& slot)>;
// Checks the options (Throws Error) and builds the values that the parameters of a group share.
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

// Throw Error for an option out of range: "Adam: beta1 is 1; it lies in [0, 1)".
void not_negative(double v, const char* op, const char* option);
void below_one(double v, const char* op, const char* option);

}  // namespace lc::optim
