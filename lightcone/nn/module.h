// A model is a plain struct of layers. Layers are values, and one method, visit(), names the parts of the struct.
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
// The path of a parameter is its name, as in PyTorch's state_dict. The one visit() serves to create, initialise, count,
// freeze, save and print the parameters (torch.nn.Module).
//
// Layers that differ between training and inference (dropout, batch_norm) take a mode after their operands. A model
// with such a layer passes the mode on: auto operator()(const auto& x, auto& mode) const { return drop(fc1(x), mode); }
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
#include "lightcone/nn/parameter.h"
#include "lightcone/ops/random.h"
#include "lightcone/ops/typed/typed.h"

namespace lc {
class Program;
}

namespace lc::nn {

// Computes the initial values of a parameter from its shape: a function of nn/init.h with its options bound.
using Init = std::function<init::Values(const init::Extents&, const init::Source&)>;
// Initialiser that draws from the uniform distribution on [-bound, bound).
Init uniform_init(double bound);
// Initialiser that gives every element the same value.
Init constant_init(float value);

// A tensor that a model owns: an input of the graph.
struct Entry {
  // The kind of an entry.
  enum class Kind : std::uint8_t {
    Parameter,  // trained
    Frozen,     // a parameter that is not trained
    Buffer,     // updated by the layer itself, such as running statistics
  };
  std::string name;
  Tensor tensor;
  Init init;
  Kind kind;
};

// Options of LoRA (low-rank adaptation): the weight itself is not trained, and the trained product of two small
// matrices is added to it: weight + scale * B A. E. J. Hu and others, "LoRA: low-rank adaptation of large language
// models", 2021.
struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 16;  // scale = alpha / rank
  // The layers whose weights get an adapter, by the last components of their paths: "q_proj", "mlp.up_proj", "fc1".
  std::vector<std::string> targets = {"q_proj", "v_proj"};
};
// The adapter of one weight: the weight's value in the graph is weight + scale * b a.
struct Adapter {
  std::string weight, a, b;  // names of entries, of shapes [out, in], [rank, in] and [out, rank]
  double scale;
};

// Traverses a module; visit() receives one. Each call names one part of the module.
class Visitor {
 public:
  // `at` is the source line that Errors name.
  Visitor(Graph& g, std::string path, std::vector<Entry>& entries, std::vector<Adapter>& adapters,
          const SourceLocation& at)
      : g_(g), path_(std::move(path)), entries_(entries), adapters_(adapters), at_(at) {}

  // Visits a part that has parts of its own. Its parameters are named "name.<part>".
  template <class M>
  Visitor& operator()(const std::string& name, M& module) {
    const std::size_t length = enter(name);
    module.visit(*this);
    path_.resize(length);
    return *this;
  }
  // Visits several parts of one type, named name.0, name.1, ... (torch.nn.ModuleList).
  template <class M>
  Visitor& operator()(const std::string& name, std::vector<M>& modules) {
    for (std::size_t k = 0; k < modules.size(); ++k)
      (*this)(name + (name.empty() ? "" : ".") + std::to_string(k), modules[k]);
    return *this;
  }
  // Creates a parameter as an input of the graph and stores its f32 value in `slot`: the input itself, or what is
  // converted from its storage (ScopedStorage). Throws Error if an extent is symbolic.
  Visitor& parameter(const std::string& name, Tensor& slot, Shape shape, Init init);
  // Creates a buffer, an input that is never trained, and stores it in `slot`. Throws Error if an extent is symbolic.
  Visitor& buffer(const std::string& name, Tensor& slot, Shape shape, Init init, DType dtype = DType::F32);

  // Overrides the initialisers of everything that is visited in its scope. An empty Init overrides nothing. `matrices`
  // applies to parameters of two or more axes, `biases` to parameters named "bias", and `scales` to the other
  // parameters of one axis, such as the weight of a norm.
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
  // Everything that is visited in its scope is not trained.
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

  // Parameters visited in its scope are stored in the types that `storage` chooses. Those in other types than f32 are
  // not trained.
  class ScopedStorage {
   public:
    ScopedStorage(Visitor& v, const StorageOf& storage) : v_(v), before_(std::exchange(v.storage_, &storage)) {}
    ~ScopedStorage() { v_.storage_ = before_; }
    ScopedStorage(const ScopedStorage&) = delete;
    ScopedStorage& operator=(const ScopedStorage&) = delete;

   private:
    Visitor& v_;
    const StorageOf* before_;
  };

  // Everything that is visited in its scope is not trained, and the weights of the layers that the options name get
  // adapters (see Lora).
  class ScopedLora {
   public:
    // Throws Error if the rank is below 1 or there are no targets.
    ScopedLora(Visitor& v, const LoraOptions& o);
    ~ScopedLora() { v_.lora_ = before_; }
    ScopedLora(const ScopedLora&) = delete;
    ScopedLora& operator=(const ScopedLora&) = delete;
    // Throws Error that names a target for which no layer was visited.
    void require_all() const;

   private:
    Visitor& v_;
    ScopedFreeze freezing_;
    std::size_t first_;
    const LoraOptions* before_;
  };

 private:
  // Adds an adapter to `slot` if it is the weight of a target.
  void adapt(const std::string& name, Tensor& slot);
  std::size_t enter(const std::string& name);
  void add(const std::string& name, Tensor& slot, Shape shape, Init init, DType dtype, Entry::Kind kind);
  // Adds a parameter in its storage, if that is not f32; otherwise returns false.
  bool add_stored(const std::string& name, Tensor& slot, const Shape& shape, const Init& init);

  Graph& g_;
  std::string path_;
  std::vector<Entry>& entries_;
  std::vector<Adapter>& adapters_;
  SourceLocation at_;
  const LoraOptions* lora_ = nullptr;
  const StorageOf* storage_ = nullptr;
  bool frozen_ = false;
  ScopedInit::First first_ = {};
};

// The modes. In training, layers draw random numbers and may assign buffers.
struct Inference {};
class ModelBase;
// The mode of a model that trains.
class Training {
 public:
  explicit Training(ModelBase& model) : model_(model) {}
  // The random generator of the model. The first call adds the state of the generator to the graph.
  Random& random() const;

 private:
  ModelBase& model_;
};
template <class Mode>
inline constexpr bool is_training = std::is_same_v<std::remove_cvref_t<Mode>, Training>;
template <class Mode>
inline constexpr bool is_mode = is_training<Mode> || std::is_same_v<std::remove_cvref_t<Mode>, Inference>;

// The generator from which a layer draws its dropout masks; null if it draws none.
inline Random* dropout_rng(const Inference&, double) { return nullptr; }
inline Random* dropout_rng(const Training& mode, double p) { return p > 0 ? &mode.random() : nullptr; }

using At = SourceLocation;

// Calls layer(x, mode, at). The mode and `at`, the source line that Errors name, are passed only if the layer takes
// them.
template <class L, class Mode, class... X>
auto apply(const L& layer, Mode& mode, const At& at, const X&... x) {
  if constexpr (std::is_invocable_v<const L&, const X&..., Mode&, const At&>) return layer(x..., mode, at);
  else if constexpr (std::is_invocable_v<const L&, const X&..., Mode&>) return layer(x..., mode);
  else if constexpr (std::is_invocable_v<const L&, const X&..., const At&>) return layer(x..., at);
  else return layer(x...);
}

// Provides model(x), model(x, y), ... by calling Self::call(at, x...), where `at` is the caller's line. A parameter
// after a pack cannot have a default, so calls with five or more operands have no line of their own.
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

// Provides the call operators of a module that wraps another one and runs in the mode of the surrounding model.
// module(x, mode), module(x, y, mode), ... call Self::call_in(mode, at, x...); without a mode they run as inference.
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

// The part of a model that does not depend on its type: entries, adapters, initial values and the random generator.
class ModelBase {
 public:
  ModelBase(const ModelBase&) = delete;
  ModelBase& operator=(const ModelBase&) = delete;
  virtual ~ModelBase() = default;  // a model may be kept by its base

  Graph& graph() const { return graph_; }                             // the graph that the model's inputs are in
  const std::vector<Entry>& entries() const { return entries_; }      // all parameters and buffers
  const std::vector<Adapter>& adapters() const { return adapters_; }  // the adapters that Lora added
  std::vector<Tensor> parameters() const;                             // the trained ones
  // The trained parameters with a name for which the predicate is true, for example a group with its own options.
  std::vector<Tensor> parameters(const std::function<bool(std::string_view name)>& wanted) const;
  std::int64_t count() const;   // number of trained elements
  std::string summary() const;  // a table of name, shape and number of elements
  // Loads the initial values into a program of the graph. The same seed gives the same bits on every machine.
  void initialise(Program& p, std::int64_t seed) const;
  // The initial value of an entry in its element type. `bytes` is valid as long as `owner` exists.
  struct FirstValue {
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  static FirstValue first_value(const Entry& e, std::int64_t seed);
  // The generator of all random numbers in training. The first call creates it and adds its state to the graph.
  Random& random();

  // While an object of this class exists, the model is being traced, and calling the model itself (which would be
  // inference) is an Error.
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

// A module whose parameters are inputs of a graph. A call, model(x, ...), is inference; trace() trains.
template <class M>
class Model : public ModelBase, public Callable<Model<M>> {
 public:
  // The parameters of `module` become inputs of `g`, with names that begin with `path`. `seed` is the seed of dropout.
  explicit Model(Graph& g, M module = {}, const std::string& path = "", std::int64_t seed = 0,
                 const At& at = At::current())
      : ModelBase(g, seed), module_(std::move(module)) {
    Visitor v(g, path, entries_, adapters_, at);
    module_.visit(v);
  }
  const M& module() const { return module_; }  // the wrapped module

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

// A module whose parameters are not trained: they have no gradients, and optimisers keep no state for them
// (requires_grad_(False)). It runs in the mode of the surrounding model.
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

// A module whose parameters are stored in any type: halves, floats of 8 bits, quantised blocks. Products read them as
// they are stored; everything else reads their f32 values, which are computed when a file is loaded. Parameters in
// other types than f32 are not trained, and have initial values only if the type is a float. It runs in the mode of the
// surrounding model.
//   nn::Model<nn::Stored<Net>> net(g, nn::Stored(Net{}, stored_as(Weights::open("net.gguf"))));
template <class M>
struct Stored : CallableInMode<Stored<M>> {
  explicit Stored(M m = {}, StorageOf s = {}) : module(std::move(m)), storage(std::move(s)) {}
  M module;
  StorageOf storage;
  void visit(Visitor& v) {
    const Visitor::ScopedStorage scope(v, storage);
    module.visit(v);
  }
  template <class Mode, class... X>
  auto call_in(Mode& mode, const At& at, const X&... x) const {
    return nn::apply(module, mode, at, x...);
  }
};

// A model of which only adapters are trained (peft.LoraConfig, without dropout). Next to each adapted weight are the
// parameters lora_A.weight, initialised by kaiming_uniform, and lora_B.weight, initialised to zeros so that the initial
// model computes the same as the wrapped one. The model runs in the mode of the surrounding model. Visiting throws
// Error if a target is not the name of a layer. Trainer::merged() returns the sums.
//   nn::Model<nn::Lora<LlamaModel>> model(g, nn::Lora(LlamaModel::of(w), {.rank = 8}));
template <class M>
class Lora : public CallableInMode<Lora<M>> {
 public:
  // `o` names the layers that get adapters.
  explicit Lora(M module = {}, LoraOptions o = {}) : module_(std::move(module)), options_(std::move(o)) {}
  void visit(Visitor& v) {
    const Visitor::ScopedLora adapting(v, options_);
    module_.visit(v);
    adapting.require_all();
  }
  const M& module() const { return module_; }  // the wrapped module
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

// The extent from the type or, if the type has dyn, the given one.
template <typed::Dim D>
constexpr std::int64_t extent_of(std::int64_t given) {
  return D.number() ? D.n : given;
}
// An operand with the source line of the caller, for operators.
template <class E, typed::Dim... A>
typed::Located<typed::Tensor<E, A...>> located(const typed::Tensor<E, A...>& x, const At& at) {
  return {x, at};
}
inline Operand located(const lc::Tensor& x, const At& at) { return Operand(x, at); }
// Throws Error that names the layer if `parameter` was never visited, which happens if the enclosing module does not
// name the layer in its visit(). Layers call it before they read their parameters.
void require_visited(std::string_view layer, const Tensor& parameter);
// Converts y, which must have the shape and element type of x, to the static type of x.
template <class E, typed::Dim... A>
typed::Tensor<E, A...> as_typed(const typed::Tensor<E, A...>&, const lc::Tensor& y) {
  return typed::Tensor<E, A...>::from(y);
}
inline lc::Tensor as_typed(const lc::Tensor&, const lc::Tensor& y) { return y; }
// The same for a function that converts integers to f32.
template <class E, typed::Dim... A>
typed::Tensor<typed::FloatOf<E>, A...> as_float_typed(const typed::Tensor<E, A...>&, const lc::Tensor& y) {
  return typed::Tensor<typed::FloatOf<E>, A...>::from(y);
}
inline lc::Tensor as_float_typed(const lc::Tensor&, const lc::Tensor& y) { return y; }
// The same for a y of which only the first `Kept` axes have the static extents of x; the later ones are dyn.
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

// Base of layers that need a mode. Calling one without a mode is a compile error with this sentence.
template <typed::Text Sentence>
struct AsksForMode {
  template <class X>
  X operator()(const X& x) const {
    typed::require<sizeof(X) ? Sentence : typed::Text()>();
    return x;
  }
};

}  // namespace lc::nn
