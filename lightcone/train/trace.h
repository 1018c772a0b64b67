// Backpropagation checked by the C++ compiler.
//
//   auto loss = trace(net, [](auto& net, auto x, auto y) { return cross_entropy(net(x), y); }, x, y);
//   update(net, optim::AdamW{.lr = 3e-4}, backward(std::move(loss)));
//
// The first argument of the function is the model in training: dropout drops, and batch_norm uses the statistics of the
// batch. Outside of it net(x) is inference, and a loss made of that is not a traced loss. These mistakes do not
// compile, each with a sentence in the compiler's message: backward() of a loss that was not traced or is not moved, a
// loss that is not a scalar, and gradients of one model used for another one. Unused gradients are a warning. Gradients
// that were used already, or that belong to another model of the same type, are an Error at run time.
#pragma once

#include <utility>
#include <vector>

#include "lightcone/autograd/autograd.h"
#include "lightcone/nn/module.h"
#include "lightcone/ops/typed/typed.h"
#include "lightcone/optim/optim.h"

namespace lc {

// A model in training. Called with operands alone, it passes the mode to the module.
template <class M>
class InTraining : public nn::Callable<InTraining<M>> {
 public:
  explicit InTraining(nn::Model<M>& model) : model_(model), mode_(model) {}
  const M& module() const { return model_.module(); }  // the module of the model
  nn::Training& mode() { return mode_; }               // the mode, for modules that are called directly

 private:
  friend class nn::Callable<InTraining<M>>;
  template <class... X>
  auto call(const SourceLocation& at, const X&... x) const {
    return nn::apply(model_.module(), mode_, at, x...);
  }
  nn::Model<M>& model_;
  mutable nn::Training mode_;  // layers take it as a non-const reference and draw from it
};

// A loss of a model in training. Only trace() makes one, and backward() consumes it.
template <class M>
class [[nodiscard]] Traced {
 public:
  Traced(Traced&&) = default;
  Traced& operator=(Traced&&) = default;
  const Tensor& loss() const { return loss_; }  // the loss as a tensor of the graph

 private:
  template <class N, class F, class... X>
  friend auto trace(nn::Model<N>& model, F&& f, const X&... x);
  template <class N>
  friend class Gradients;
  Traced(const nn::Model<M>& model, const Tensor& loss) : model_(&model), loss_(loss) {}
  const nn::Model<M>* model_;
  Tensor loss_;
};

// The gradients of a model's parameters, in the order of parameters(). update() consumes them.
template <class M>
class [[nodiscard]] Gradients {
 public:
  Gradients(Traced<M>&& traced, const SourceLocation& at) : model_(traced.model_), loss_(traced.loss_) {
    const OpScope scope("backward", at);
    const std::vector<Tensor> p = model_->parameters(), d = gradients(Operand(loss_, at), p);
    for (std::size_t k = 0; k < p.size(); ++k) updates_.push_back({p[k], d[k]});
  }
  Gradients(Gradients&&) = default;
  Gradients& operator=(Gradients&&) = default;
  const std::vector<optim::Update>& updates() const { return updates_; }  // one per parameter, for optim::step()
  // The updates of the parameters with a name for which the predicate is true, a group for optim::step().
  template <class F>
  std::vector<optim::Update> updates(const F& wanted) const {
    std::vector<optim::Update> group;
    for (const optim::Update& u : updates_)
      if (wanted(std::string_view(u.parameter.node().name))) group.push_back(u);
    return group;
  }
  const Tensor& loss() const { return loss_; }  // the loss as a tensor of the graph
  // Scales all gradients so that their joint norm is at most max_norm (torch.nn.utils.clip_grad_norm_). Returns the
  // norm before scaling.
  Tensor clip_norm(double max_norm, const SourceLocation& at = SourceLocation::current()) {
    optim::Clipped c = optim::clip_grad_norm(updates_, max_norm, 2, at);
    updates_ = std::move(c.updates);
    return c.norm;
  }
  // Clamps every gradient element to [-value, value] (torch.nn.utils.clip_grad_value_).
  Gradients& clip_value(double value, const SourceLocation& at = SourceLocation::current()) {
    updates_ = optim::clip_grad_value(updates_, value, at);
    return *this;
  }
  // True if these are the gradients of this model object.
  bool of(const nn::Model<M>& model) const { return model_ == &model; }

 private:
  template <class N>
  friend optim::Step update(nn::Model<N>& model, const optim::Optimizer& optimizer, Gradients<N>&& d,
                            const optim::StepOptions& o, const SourceLocation& at);
  const nn::Model<M>* model_;
  Tensor loss_;
  std::vector<optim::Update> updates_;
  bool used_ = false;
};

namespace detail {
template <class E, typed::Dim... D>
consteval typed::Text scalar(const typed::Tensor<E, D...>*) {
  typed::Text e;
  if (sizeof...(D) != 0)
    e.add("trace: the loss is ")
        .add(typed::Tensor<E, D...>::static_shape)
        .add(", not a scalar; reduce it with sum or mean");
  return e;
}
consteval typed::Text scalar(const Tensor*) { return {}; }  // an untyped loss is checked when the graph is built
template <class T>
inline constexpr typed::Text kNotTraced =
    typed::Text(sizeof(T) ? "backward: this loss was not traced; write backward(trace(model, f, x...))" : "");
template <class T>
inline constexpr typed::Text kUsedUp =
    typed::Text(sizeof(T) ? "backward: it uses the loss up; write backward(std::move(loss))" : "");
template <class T>
inline constexpr typed::Text kOtherModel =
    typed::Text(sizeof(T) ? "update: these are the gradients of another model" : "");
}  // namespace detail

// Returns the loss that `f` computes from the model in training, its first argument, and from `x`. Throws Error if `f`
// calls the model itself, which is inference.
template <class M, class F, class... X>
auto trace(nn::Model<M>& model, F&& f, const X&... x) {
  InTraining<M> in_training(model);
  const nn::ModelBase::InTrace traced(model);
  const auto loss = std::forward<F>(f)(in_training, x...);
  typed::require<detail::scalar(static_cast<const decltype(loss)*>(nullptr))>();
  return Traced<M>(model, loss);
}

// Returns the gradients of the loss. Throws Error if the loss does not depend on a parameter; the message names the
// parameter and the operation that cut the path.
template <class M>
Gradients<M> backward(Traced<M>&& loss, const SourceLocation& at = SourceLocation::current()) {
  return Gradients<M>(std::move(loss), at);
}
// Does not compile: the loss must be moved.
template <class M>
void backward(Traced<M>&) {
  typed::require<detail::kUsedUp<M>>();
}
// Does not compile: the loss was not traced.
template <class T>
  requires std::is_base_of_v<Tensor, T>
void backward(const T&) {
  typed::require<detail::kNotTraced<T>>();
}

// Assigns the result of an optimiser step to every parameter of the model after each run.
template <class M>
optim::Step update(nn::Model<M>& model, const optim::Optimizer& optimizer, Gradients<M>&& d,
                   const optim::StepOptions& o = {}, const SourceLocation& at = SourceLocation::current()) {
  if (!d.of(model)) throw Error("update", "these are the gradients of another model of the same type");
  if (std::exchange(d.used_, true)) throw Error("update", "these gradients were used already");
  return optim::step(optimizer, d.updates(), o, at);
}
// Does not compile: the gradients belong to another type of model.
template <class M, class N>
void update(nn::Model<M>&, const optim::Optimizer&, Gradients<N>&&) {
  typed::require<detail::kOtherModel<N>>();
}

}  // namespace lc
