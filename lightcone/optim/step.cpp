// A step: checks, counting and assignments around the rule of an optimiser.
#include "lightcone/optim/rules.h"

namespace lc::optim {

namespace {
constexpr const char* kStep = "optim.step";
}

void not_negative(double v, const char* op, const char* option) {
  if (!(v >= 0 && v < kInf)) throw Error(op, str_cat(option, " is ", v, "; it must be a number that is not negative"));
}
void below_one(double v, const char* op, const char* option) {
  if (!(v >= 0 && v < 1)) throw Error(op, str_cat(option, " is ", v, "; it lies in [0, 1)"));
}

const std::string& name_of(const Tensor& parameter) { return parameter.node().name; }

void check_update(const Update& u, const char* op) {
  if (!u.parameter.defined() || !u.gradient.defined())
    throw Error(op, "an update needs a parameter and a gradient; one of them was never given a value");
  const Tensor &p = u.parameter, &g = u.gradient;
  if (p.node().op != Op::Input || !p.view().identity())
    throw Error(op,
                str_cat("the parameter ", str(p.shape()), " is not an input read as it is, so it cannot be a state"));
  const std::string& name = name_of(p);
  if (&p.impl() != &g.impl()) throw Error(op, str_cat("'", name, "' and its gradient belong to different graphs"));
  if (!is_float(p.dtype()) || !is_float(g.dtype()))
    throw Error(op, str_cat("'", name, "' is ", lc::name(p.dtype()), ", its gradient ", lc::name(g.dtype()),
                            "; both must be floating"));
  if (p.shape() != g.shape())
    throw Error(op, str_cat("'", name, "' is ", str(p.shape()), ", its gradient ", str(g.shape())));
}

void must_be_scalar(const Tensor& t, const Graph& g, const char* op, const char* what, bool right_type,
                    const char* type) {
  if (&t.graph() != &g) throw Error(op, str_cat(what, " belongs to another graph"));
  if (t.rank() != 0 || !right_type)
    throw Error(op,
                str_cat(what, " is ", name(t.dtype()), " ", str(t.shape()), "; it must be ", type, " without axes"));
}

Tensor broadcast_to(const Tensor& scalar, const Shape& shape) {
  return scalar.reshape(Shape(shape.size(), 1)).expand(shape);
}

Tensor assign_when(const Tensor& when, const Tensor& state, const Tensor& next) {
  const Tensor after = when.defined() ? prim::where(broadcast_to(when, next.shape()), next, state) : next;
  state.graph().assign(state, after);
  return after;
}

Tensor counter(Graph& g, std::string_view name, const Tensor& when, const Tensor::At& at) {
  const OpScope scope("optim.counter", at);
  if (when.defined()) must_be_scalar(when, g, "optim.counter", "when", when.dtype() == DType::Bool, "bool");
  const Tensor count = g.input(name, {}, DType::I64, at);
  assign_when(when, count, plus(count, 1));
  return count;
}

Tensor StepState::zero_state(const std::string& name, const Shape& shape, DType dtype) const {
  return states->emplace_back(t.graph().input(name, shape, dtype));
}

ParameterUpdate::ParameterUpdate(const StepState& step, const Update& u)
    : step_(step),
      name_(name_of(u.parameter)),
      p_(prim::cast(u.parameter, wide(u.parameter.dtype()))),
      g_(prim::cast(u.gradient, p_.dtype())) {}

Tensor ParameterUpdate::spread(const Tensor& scalar) const {
  return broadcast_to(scalar.dtype() == DType::Bool ? scalar : prim::cast(scalar, p_.dtype()), p_.shape());
}
Tensor ParameterUpdate::state(const std::string& suffix) {
  return step_.zero_state(name_ + "." + suffix, p_.shape(), p_.dtype());
}
Tensor ParameterUpdate::finish(const Tensor& parameter, const Tensor& next) const {
  const Tensor after = keep(parameter, prim::cast(next, parameter.dtype()));
  for (const auto& [state, value] : behind_) keep(state, value());
  return after;
}
void ParameterUpdate::apply_sign_and_decay(bool maximize, double weight_decay) {
  if (maximize) g_ = scaled(g_, -1);
  if (weight_decay != 0) g_ = prim::add(g_, scaled(p_, weight_decay));
}
void ParameterUpdate::decay_parameter(double weight_decay) {
  if (weight_decay != 0) p_ = prim::mul(p_, spread(plus(scaled(step_.lr, -weight_decay), 1)));
}

namespace {

// Returns the learning rate of a group: its tensor, or the optimiser's own number.
Tensor rate(const Group& group, const StepOptions& o, const Tensor& t) {
  const double own = std::visit([](const auto& k) { return k.lr; }, group.optimizer);
  not_negative(own, kStep, "lr");
  const Tensor lr = group.lr.defined() ? group.lr : o.lr;
  if (!lr.defined()) return full_like(t, own);
  must_be_scalar(lr, t.graph(), kStep, "lr", is_float(lr.dtype()), "floating");
  return prim::cast(lr, DType::F64);
}

Graph& graph_of(const std::vector<Group>& groups) {
  for (const Group& g : groups)
    for (const Update& u : g.updates) check_update(u, kStep);
  const Tensor* first = nullptr;
  for (const Group& g : groups)
    for (const Update& u : g.updates) {
      if (!first) first = &u.parameter;
      if (&first->graph() != &u.parameter.graph())
        throw Error(kStep,
                    str_cat("'", name_of(u.parameter), "' belongs to another graph than '", name_of(*first), "'"));
    }
  if (!first) throw Error(kStep, "there is no parameter to update");
  return first->graph();
}

Tensor new_counter(Graph& g, const std::string& name, const Tensor& when, const Tensor::At& at) {
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].name == name)
      throw Error(kStep, str_cat("'", name,
                                 "' counts the steps of this graph already: give it as .step, or these steps a .name ",
                                 "of their own"));
  return counter(g, name, when, at);
}

}  // namespace

Step step(const std::vector<Group>& groups, const StepOptions& o, const Tensor::At& at) {
  const OpScope scope(kStep, at);
  Graph& g = graph_of(groups);
  if (o.when.defined()) must_be_scalar(o.when, g, kStep, "when", o.when.dtype() == DType::Bool, "bool");
  Step s;
  s.when = o.when;
  if (o.step.defined()) must_be_scalar(o.step, g, kStep, "step", o.step.dtype() == DType::I64, "i64");
  s.step = o.step.defined() ? o.step : new_counter(g, str_cat(o.name, ".step"), o.when, at);
  s.states.push_back(s.step);
  StepState step{.name = std::string(o.name),
                 .done = s.step,
                 .first = prim::equal(s.step, full_like(s.step, 0)),
                 .when = o.when,
                 .t = plus(prim::cast(s.step, DType::F64), 1),
                 .lr = {},
                 .states = &s.states};
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (k > 0) step.name = str_cat(o.name, ".", k);
    step.lr = rate(groups[k], o, step.t);
    const Rule next = std::visit([&](const auto& optimizer) { return rule(optimizer, step); }, groups[k].optimizer);
    for (const Update& u : groups[k].updates) {
      ParameterUpdate slot(step, u);
      s.parameters.push_back(u.parameter);
      s.next.push_back(slot.finish(u.parameter, next(slot)));
    }
  }
  return s;
}

Step step(const Optimizer& optimizer, const std::vector<Update>& updates, const StepOptions& o, const Tensor::At& at) {
  return step(std::vector<Group>{{optimizer, updates}}, o, at);
}

}  // namespace lc::optim
