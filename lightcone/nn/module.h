// Models as plain structs: layers are values, a model is a struct of layers, and one method names them.
//
//   struct Net {
//     nn::Linear<784, 128> fc1;
//     nn::Linear<128, 10> fc2;
//     void visit(nn::Visitor& v) { v("fc1", fc1)("fc2", fc2); }
//     auto operator()(const auto& x) const { return fc2(relu(fc1(x))); }
//   };
//   Graph g;
//   nn::Model<Net> net(g);          // inputs "fc1.weight", "fc1.bias", ...
//   auto y = net(x);
//
// The path of a parameter is its name, as in PyTorch's state_dict. That one visit() creates parameters, initialises,
// counts, freezes, saves and prints them (torch.nn.Module).
//
// What differs between training and inference (dropout, batch_norm) takes a mode behind its operands, and a model with
// such a layer passes it on: auto operator()(const auto& x, auto& mode) const { return drop(fc1(x), mode); }
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/nn/init.h"
#include "lightcone/ops/random.h"
#include "lightcone/ops/typed/typed.h"

namespace lc {
class Program;
}

namespace lc::nn {

// The first values of a parameter of a shape: a function of nn/init.h with its options bound.
using Init = std::function<init::Values(const init::Extents&, const init::Source&)>;
Init uniform_init(double bound);  // in +-bound
Init constant_init(float value);

// A tensor that a model owns: an input of the graph.
struct Entry {
  enum class Kind : std::uint8_t {
    Parameter,  // trained
    Frozen,     // a parameter that is not
    Buffer,     // kept by the layer itself: running statistics
  };
  std::string name;
  Tensor tensor;
  Init init;
  Kind kind;
};

// A matrix that is not trained and has the product of two small ones added to it, which are: weight + scale b a.
// LoRA: E. J. Hu and others, "LoRA: low-rank adaptation of large language models", 2021.
struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 16;  // scale = alpha / rank
  // Layers whose weight has one, by the last words of their path: "q_proj", "mlp.up_proj", "fc1".
  std::vector<std::string> targets = {"q_proj", "v_proj"};
};
struct Adapter {
  std::string weight, a, b;  // names of entries: [out, in], [rank, in], [out, rank]
  double scale;
};

// Goes through a module: what visit() is given. Each call names a part.
class Visitor {
 public:
  // `at`: the line that Errors name.
  Visitor(Graph& g, std::string path, std::vector<Entry>& entries, std::vector<Adapter>& adapters,
          const SourceLocation& at)
      : g_(g), path_(std::move(path)), entries_(entries), adapters_(adapters), at_(at) {}

  // A part with parts of its own.
  template <class M>
  Visitor& operator()(const std::string& name, M& module) {
    const std::size_t length = enter(name);
    module.visit(*this);
    path_.resize(length);
    return *this;
  }
  // The same of several, named name.0, name.1, ... (torch.nn.ModuleList).
  template <class M>
  Visitor& operator()(const std::string& name, std::vector<M>& modules) {
    for (std::size_t k = 0; k < modules.size(); ++k)
      (*this)(name + (name.empty() ? "" : ".") + std::to_string(k), modules[k]);
    return *this;
  }
  // Fills `slot` with an input of the graph. f32; extents are numbers.
  Visitor& parameter(const std::string& name, Tensor& slot, Shape shape, Init init);
  Visitor& buffer(const std::string& name, Tensor& slot, Shape shape, Init init, DType dtype = DType::F32);

  // While it lives, what is visited begins as these say, where they are given: parameters of two axes and more, those
  // called "bias", and the other ones of one axis, as a norm's weight.
  class ScopedInit {
   public:
    ScopedInit(Visitor& v, Init matrices, Init biases = {}, Init scales = {})
        : v_(v), before_(std::exchange(v.first_, {std::move(matrices), std::move(biases), std::move(scales)})) {}
    ~ScopedInit() { v_.first_ = std::move(before_); }
    ScopedInit(const ScopedInit&) = delete;
    ScopedInit& operator=(const ScopedInit&) = delete;

   private:
    friend class Visitor;
    struct First {
      Init matrices = {}, biases = {}, scales = {};
    };
    Visitor& v_;
    First before_;
  };
  // While it lives, what is visited is not trained.
  class ScopedFreeze {
   public:
    explicit ScopedFreeze(Visitor& v) : v_(v), before_(v.frozen_) { v.frozen_ = true; }
    ~ScopedFreeze() { v_.frozen_ = before_; }
    ScopedFreeze(const ScopedFreeze&) = delete;
    ScopedFreeze& operator=(const ScopedFreeze&) = delete;

   private:
    Visitor& v_;
    bool before_;
  };

  // While it lives, what is visited is not trained, and the weights of the layers that the options name have adapters
  // (see Lora).
  class ScopedLora {
   public:
    ScopedLora(Visitor& v, const LoraOptions& o);  // Error for a rank below 1, or no target
    ~ScopedLora() { v_.lora_ = before_; }
    ScopedLora(const ScopedLora&) = delete;
    ScopedLora& operator=(const ScopedLora&) = delete;
    void require_all() const;  // Error that names a target which no layer has been

   private:
    Visitor& v_;
    ScopedFreeze freezing_;
    std::size_t first_;
    const LoraOptions* before_;
  };

 private:
  void adapt(const std::string& name, Tensor& slot);  // where it is the weight of a target
  std::size_t enter(const std::string& name);
  void add(const std::string& name, Tensor& slot, Shape shape, Init init, DType dtype, Entry::Kind kind);

  Graph& g_;
  std::string path_;
  std::vector<Entry>& entries_;
  std::vector<Adapter>& adapters_;
  SourceLocation at_;
  const LoraOptions* lora_ = nullptr;
  bool frozen_ = false;
  ScopedInit::First first_ = {};
};

// The modes. Training draws random numbers, and may assign buffers.
struct Inference {};
class ModelBase;
class Training {
 public:
  explicit Training(ModelBase& model) : model_(model) {}
  Random& random() const;  // the model's; the first who asks brings its state into the graph

 private:
  ModelBase& model_;
};
template <class Mode>
inline constexpr bool is_training = std::is_same_v<std::remove_cvref_t<Mode>, Training>;
template <class Mode>
inline constexpr bool is_mode = is_training<Mode> || std::is_same_v<std::remove_cvref_t<Mode>, Inference>;

// Where a layer that drops out draws its random numbers from; null where nothing is drawn.
inline Random* dropout_rng(const Inference&, double) { return nullptr; }
inline Random* dropout_rng(const Training& mode, double p) { return p > 0 ? &mode.random() : nullptr; }

using At = SourceLocation;

// layer(x, mode, at): the mode where the layer asks for one, and the line that Errors name where it takes one.
template <class L, class Mode, class... X>
auto apply(const L& layer, Mode& mode, const At& at, const X&... x) {
  if constexpr (std::is_invocable_v<const L&, const X&..., Mode&, const At&>) return layer(x..., mode, at);
  else if constexpr (std::is_invocable_v<const L&, const X&..., Mode&>) return layer(x..., mode);
  else if constexpr (std::is_invocable_v<const L&, const X&..., const At&>) return layer(x..., at);
  else return layer(x...);
}

// model(x), model(x, y), ... as a call of Self::call(at, x...), where `at` is the caller's line. (A parameter behind a
// pack has no default: five operands and more have no line of their own.)
template <class Self>
class Callable {
 public:
  auto operator()(const At& at = At::current()) const { return self().call(at); }
  template <class X>
  auto operator()(const X& x, const At& at = At::current()) const {
    return self().call(at, x);
  }
  template <class X, class Y>
    requires(!std::is_same_v<Y, At>)
  auto operator()(const X& x, const Y& y, const At& at = At::current()) const {
    return self().call(at, x, y);
  }
  template <class X, class Y, class Z>
    requires(!std::is_same_v<Z, At>)
  auto operator()(const X& x, const Y& y, const Z& z, const At& at = At::current()) const {
    return self().call(at, x, y, z);
  }
  template <class X, class Y, class Z, class W>
    requires(!std::is_same_v<W, At>)
  auto operator()(const X& x, const Y& y, const Z& z, const W& w, const At& at = At::current()) const {
    return self().call(at, x, y, z, w);
  }
  template <class X, class Y, class Z, class W, class V, class... More>
    requires(!std::is_same_v<V, At>)
  auto operator()(const X& x, const Y& y, const Z& z, const W& w, const V& v, const More&... more) const {
    return self().call(At::current(), x, y, z, w, v, more...);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

// The same of a module around another, whose mode is that of the model around both: module(x, mode), module(x, y,
// mode),
// ... is Self::call_in(mode, at, x...), and without a mode that of inference.
template <class Self>
class CallableInMode {
 public:
  template <class X>
  auto operator()(const X& x, const At& at = At::current()) const {
    return inferred(at, x);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, Mode& mode, const At& at = At::current()) const {
    return self().call_in(mode, at, x);
  }
  template <class X, class Y>
    requires(!std::is_same_v<Y, At> && !is_mode<Y>)
  auto operator()(const X& x, const Y& y, const At& at = At::current()) const {
    return inferred(at, x, y);
  }
  template <class X, class Y, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, const Y& y, Mode& mode, const At& at = At::current()) const {
    return self().call_in(mode, at, x, y);
  }
  template <class X, class Y, class Z>
    requires(!std::is_same_v<Z, At> && !is_mode<Y> && !is_mode<Z>)
  auto operator()(const X& x, const Y& y, const Z& z, const At& at = At::current()) const {
    return inferred(at, x, y, z);
  }
  template <class X, class Y, class Z, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, const Y& y, const Z& z, Mode& mode, const At& at = At::current()) const {
    return self().call_in(mode, at, x, y, z);
  }
  template <class X, class Y, class Z, class W, class... More>
    requires(!std::is_same_v<W, At> && !is_mode<Z> && !is_mode<W>)
  auto operator()(const X& x, const Y& y, const Z& z, const W& w, const More&... more) const {
    return inferred(At::current(), x, y, z, w, more...);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
  template <class... X>
  auto inferred(const At& at, const X&... x) const {
    Inference mode;
    return self().call_in(mode, at, x...);
  }
};

// What every model knows, whatever it is made of.
class ModelBase {
 public:
  ModelBase(const ModelBase&) = delete;
  ModelBase& operator=(const ModelBase&) = delete;
  virtual ~ModelBase() = default;  // a model may be kept by its base

  Graph& graph() const { return graph_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<Adapter>& adapters() const { return adapters_; }  // of Lora
  std::vector<Tensor> parameters() const;                             // those that are trained
  // Those of them whose name the predicate takes: groups with options of their own.
  std::vector<Tensor> parameters(const std::function<bool(std::string_view name)>& wanted) const;
  std::int64_t count() const;   // of trained elements
  std::string summary() const;  // a table: name, shape, elements
  // Loads the first values into a program of the graph. The same seed gives the same bits on every machine.
  void initialise(Program& p, std::int64_t seed) const;
  // The first value of an entry, in its element type.
  struct FirstValue {
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  static FirstValue first_value(const Entry& e, std::int64_t seed);
  // Where training draws its random numbers from; made when it is first asked for.
  Random& random();

  // While it lives, the model trains, and calling it as it is, which would be inference, is an Error.
  class InTrace {
   public:
    explicit InTrace(ModelBase& model) : model_(model) { ++model_.traces_; }
    ~InTrace() { --model_.traces_; }
    InTrace(const InTrace&) = delete;
    InTrace& operator=(const InTrace&) = delete;

   private:
    ModelBase& model_;
  };

 protected:
  ModelBase(Graph& g, std::int64_t seed) : graph_(g), seed_(seed) {}

  Graph& graph_;
  std::int64_t seed_;
  std::vector<Entry> entries_;
  std::vector<Adapter> adapters_;
  void check_not_traced(const At& at) const;

  std::unique_ptr<Random> random_;
  int traces_ = 0;
};

template <class M>
class Model : public ModelBase, public Callable<Model<M>> {
 public:
  // The parameters of `module` become inputs of `g`, their names behind `path`. `seed` is that of dropout.
  explicit Model(Graph& g, M module = {}, const std::string& path = "", std::int64_t seed = 0,
                 const At& at = At::current())
      : ModelBase(g, seed), module_(std::move(module)) {
    Visitor v(g, path, entries_, adapters_, at);
    module_.visit(v);
  }
  const M& module() const { return module_; }

 private:
  friend class Callable<Model<M>>;
  template <class... X>
  auto call(const At& at, const X&... x) const {
    check_not_traced(at);
    Inference mode;
    return nn::apply(module_, mode, at, x...);
  }
  M module_;
};

// A module whose parameters are not trained: they have no gradients, and no optimiser keeps anything for them. Its mode
// is that of the model around it, as with requires_grad_(False).
template <class M>
struct Frozen : CallableInMode<Frozen<M>> {
  Frozen(M m = {}) : module(std::move(m)) {}
  M module;
  void visit(Visitor& v) {
    const Visitor::ScopedFreeze freezing(v);
    module.visit(v);
  }
  template <class Mode, class... X>
  auto call_in(Mode& mode, const At& at, const X&... x) const {
    return nn::apply(module, mode, at, x...);
  }
};

// A model of which adapters alone are trained (peft.LoraConfig, without dropout). Their parameters are called
// lora_A.weight (first values of kaiming_uniform) and lora_B.weight (zeros, so that the model begins as it was), beside
// the weight; the mode is that of the model around it. Error for a target that is no layer's name. Trainer::merged()
// gives the sums.
//   nn::Model<nn::Lora<LlamaModel>> model(g, nn::Lora(LlamaModel::of(w), {.rank = 8}));
template <class M>
class Lora : public CallableInMode<Lora<M>> {
 public:
  explicit Lora(M module = {}, LoraOptions o = {}) : module_(std::move(module)), options_(std::move(o)) {}
  void visit(Visitor& v) {
    const Visitor::ScopedLora adapting(v, options_);
    module_.visit(v);
    adapting.require_all();
  }
  const M& module() const { return module_; }
  template <class Mode, class... X>
  auto call_in(Mode& mode, const At& at, const X&... x) const {
    return nn::apply(module_, mode, at, x...);
  }

 private:
  M module_;
  LoraOptions options_;
};

// ---- what layers are written with ---------------------------------------------------------------------

using typed::dyn;

// An extent as it was written or, for dyn, as it was given.
template <typed::Dim D>
constexpr std::int64_t extent_of(std::int64_t given) {
  return D.number() ? D.n : given;
}
// An operand of an operator that stands at a line of the caller's.
template <class E, typed::Dim... A>
typed::Located<typed::Tensor<E, A...>> located(const typed::Tensor<E, A...>& x, const At& at) {
  return {x, at};
}
inline Operand located(const lc::Tensor& x, const At& at) { return Operand(x, at); }
// Before a layer reads its parameters: an Error that names the layer where no visit() came by, because whoever holds it
// left it out of its own.
void require_visited(std::string_view layer, const Tensor& parameter);
// y, which has the shape and the element type of x, with the promises that the type of x makes.
template <class E, typed::Dim... A>
typed::Tensor<E, A...> as_typed(const typed::Tensor<E, A...>&, const lc::Tensor& y) {
  return typed::Tensor<E, A...>::from(y);
}
inline lc::Tensor as_typed(const lc::Tensor&, const lc::Tensor& y) { return y; }
// The same where integers became f32.
template <class E, typed::Dim... A>
typed::Tensor<typed::FloatOf<E>, A...> as_float_typed(const typed::Tensor<E, A...>&, const lc::Tensor& y) {
  return typed::Tensor<typed::FloatOf<E>, A...>::from(y);
}
inline lc::Tensor as_float_typed(const lc::Tensor&, const lc::Tensor& y) { return y; }
// The same where all axes behind the first `Kept` have extents that are known when the graph is built.
template <int Kept, class E, typed::Dim... A>
auto as_typed_before(const typed::Tensor<E, A...>&, const lc::Tensor& y) {
  constexpr typed::Shape s = [] {
    typed::Shape open = typed::Tensor<E, A...>::static_shape;
    for (int i = Kept; i < open.rank; ++i) open.d[i] = dyn;
    return open;
  }();
  return typed::TensorOf<E, s>::from(y);
}
template <int Kept>
lc::Tensor as_typed_before(const lc::Tensor&, const lc::Tensor& y) {
  return y;
}

// A layer that asks for a mode and was called without one: a mistake that the C++ compiler reports with this sentence.
template <typed::Text Sentence>
struct AsksForMode {
  template <class X>
  X operator()(const X& x) const {
    typed::require<sizeof(X) ? Sentence : typed::Text()>();
    return x;
  }
};

}  // namespace lc::nn
