// Backpropagation that the C++ compiler checks.
//
//   auto loss = trace(net, [](auto& net, auto x, auto y) { return cross_entropy(net(x), y); }, x, y);
//   update(net, optim::AdamW{.lr = 3e-4}, backward(std::move(loss)));
//
// The function's first argument is the model that trains: dropout drops, batch_norm looks at the batch. Outside, net(x)
// is inference, and a loss made of it is no traced one. What does not compile, each with a sentence in the compiler's
// message: a backward() of a loss that was not traced or is not moved, a loss that is no scalar, gradients of one model
// for another one. Gradients that nobody uses are a warning; those that were used already, and of another model of the
// same type, an Error.
#pragma once

#include <utility>
#include <vector>

#include "lightcone/autograd/autograd.h"
#include "lightcone/nn/module.h"
#include "lightcone/ops/typed/typed.h"
#include "lightcone/optim/optim.h"

namespace lc {

// A model while it trains: called with operands alone, it passes the mode on.
template <class M>
class InTraining : public nn::Callable<InTraining<M>> {
 public:
  explicit InTraining(nn::Model<M>& model) : model_(model), mode_(model) {}
  const M& module() const { return model_.module(); }
  nn::Training& mode() { return mode_; }

 private:
  friend class nn::Callable<InTraining<M>>;
  template <class... X>
  auto call(const SourceLocation& at, const X&... x) const {
    return nn::apply(model_.module(), mode_, at, x...);
  }
  nn::Model<M>& model_;
  mutable nn::Training mode_;  // a reference, which layers ask for as one that draws
};

// A loss of a model in training: only trace() makes one, and backward() uses it up.
template <class M>
class [[nodiscard]] Traced {
 public:
  Traced(Traced&&) = default;
  Traced& operator=(Traced&&) = default;
  const Tensor& loss() const { return loss_; }

 private:
  template <class N, class F, class... X>
  friend auto trace(nn::Model<N>& model, F&& f, const X&... x);
  template <class N>
  friend class Gradients;
  Traced(const nn::Model<M>& model, const Tensor& loss) : model_(&model), loss_(loss) {}
  const nn::Model<M>* model_;
  Tensor loss_;
};

// The gradients of a model's parameters, in the order of parameters(); update() uses them up.
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
  const std::vector<optim::Update>& updates() const { return updates_; }
  // Those of the parameters whose name the predicate takes: a group for optim::step().
  template <class F>
  std::vector<optim::Update> updates(const F& wanted) const {
    std::vector<optim::Update> group;
    for (const optim::Update& u : updates_)
      if (wanted(std::string_view(u.parameter.node().name))) group.push_back(u);
    return group;
  }
  const Tensor& loss() const { return loss_; }
  // All of them together no longer than max_norm (torch.nn.utils.clip_grad_norm_); gives the norm they had.
  Tensor clip_norm(double max_norm, const SourceLocation& at = SourceLocation::current()) {
    optim::Clipped c = optim::clip_grad_norm(updates_, max_norm, 2, at);
    updates_ = std::move(c.updates);
    return c.norm;
  }
  Gradients& clip_value(double value, const SourceLocation& at = SourceLocation::current()) {
    updates_ = optim::clip_grad_value(updates_, value, at);
    return *this;
  }
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
consteval typed::Text scalar(const Tensor*) { return {}; }  // known when the graph is built
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

// The loss that `f` computes with the model in training, its first argument, and `x`. Error where it calls the model
// itself, which is inference.
template <class M, class F, class... X>
auto trace(nn::Model<M>& model, F&& f, const X&... x) {
  InTraining<M> in_training(model);
  const nn::ModelBase::InTrace traced(model);
  const auto loss = std::forward<F>(f)(in_training, x...);
  typed::require<detail::scalar(static_cast<const decltype(loss)*>(nullptr))>();
  return Traced<M>(model, loss);
}

// Error when the loss does not depend on a parameter; it names the parameter and what cut the path.
template <class M>
Gradients<M> backward(Traced<M>&& loss, const SourceLocation& at = SourceLocation::current()) {
  return Gradients<M>(std::move(loss), at);
}
template <class M>
void backward(Traced<M>&) {
  typed::require<detail::kUsedUp<M>>();
}
template <class T>
  requires std::is_base_of_v<Tensor, T>
void backward(const T&) {
  typed::require<detail::kNotTraced<T>>();
}

// Every parameter of the model takes a step after each run.
template <class M>
optim::Step update(nn::Model<M>& model, const optim::Optimizer& optimizer, Gradients<M>&& d,
                   const optim::StepOptions& o = {}, const SourceLocation& at = SourceLocation::current()) {
  if (!d.of(model)) throw Error("update", "these are the gradients of another model of the same type");
  if (std::exchange(d.used_, true)) throw Error("update", "these gradients were used already");
  return optim::step(optimizer, d.updates(), o, at);
}
template <class M, class N>
void update(nn::Model<M>&, const optim::Optimizer&, Gradients<N>&&) {
  typed::require<detail::kOtherModel<N>>();
}

}  // namespace lc
