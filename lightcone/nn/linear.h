// Products with a weight and lookups of its rows: torch.nn.Linear, Bilinear, Embedding and EmbeddingBag; and distances
// of two tensors.
#pragma once

#include <cmath>
#include <optional>

#include "lightcone/nn/module.h"

namespace lc::nn {

// Options of Linear and Bilinear.
struct LinearOptions {
  bool bias = true;
};
// torch.nn.Linear: x [..., in] -> x weight^T + bias, [..., out], with a weight [out, in]. There is no bias in
// Linear<784, 10, false> and with {.bias = false}.
template <typed::Dim In = dyn, typed::Dim Out = dyn, bool Bias = true>
class Linear {
 public:
  Linear(LinearOptions o = {.bias = Bias})
    requires(In.number() && Out.number())
      : in_(In.n), out_(Out.n), o_(o) {}
  Linear(std::int64_t in, std::int64_t out, LinearOptions o = {.bias = Bias})
      : in_(extent_of<In>(in)), out_(extent_of<Out>(out)), o_(o) {}
  void visit(Visitor& v) {
    const Init init = uniform_init(in_ > 0 ? 1 / std::sqrt(static_cast<double>(in_)) : 0);
    v.parameter("weight", weight, {out_, in_}, init);
    if (o_.bias) v.parameter("bias", bias, {out_}, init);
  }
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    require_visited("Linear", weight);
    auto y = typed::linear(x, weight, at);
    return o_.bias ? decltype(y)::from(lc::linear(Operand(x, at), weight, bias), at) : y;
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    require_visited("Linear", weight);
    return o_.bias ? lc::linear(Operand(x, at), weight, bias) : lc::linear(Operand(x, at), weight);
  }

  typed::Tensor<float, Out, In> weight;
  typed::Tensor<float, Out> bias;

 private:
  std::int64_t in_, out_;
  LinearOptions o_;
};

// Adds one parameter `bias` along an axis: Bias1d along the last axis, Bias2d along the channels (axis 1 of
// [batch, channels, ...]). The parameter is initialised as the bias of a Linear with n inputs.
template <int Axis>
class Bias {
 public:
  explicit Bias(std::int64_t n) : n_(n) {}
  void visit(Visitor& v) { v.parameter("bias", bias, {n_}, uniform_init(1 / std::sqrt(static_cast<double>(n_)))); }
  template <class X>
  X operator()(const X& x, const At& at = At::current()) const {
    require_visited("Bias", bias);
    const Operand in(x, at);
    const int axis = wrap_axis(Axis, in->rank(), in->shape(), "Bias");
    Shape s(static_cast<std::size_t>(in->rank() - axis), 1);
    s[0] = n_;
    return as_typed(x, in + Operand(bias.reshape(s, at), at));
  }

  lc::Tensor bias;

 private:
  std::int64_t n_;
};
using Bias1d = Bias<-1>;
using Bias2d = Bias<1>;

// torch.nn.Bilinear: a [..., in1] and b [..., in2] -> y [..., out] with y[o] = sum over i, j of a[i] weight[o, i, j]
// b[j], plus bias[o]. Throws Error if the shapes do not match.
class Bilinear {
 public:
  Bilinear(std::int64_t in1, std::int64_t in2, std::int64_t out, LinearOptions o = {})
      : in1_(in1), in2_(in2), out_(out), o_(o) {}
  void visit(Visitor& v);
  lc::Tensor operator()(const lc::Tensor& a, const lc::Tensor& b, const At& at = At::current()) const;

  lc::Tensor weight, bias;

 private:
  std::int64_t in1_, in2_, out_;
  LinearOptions o_;
};

// Options of Embedding.
struct EmbeddingOptions {
  // This row is initialised to zeros and gets no gradient.
  std::optional<std::int64_t> padding_idx = {};
};
// Rows of `weight` by ids [...]: [..., width]. The row `padding_idx` gets no gradient.
lc::Tensor rows_of(Operand weight, const lc::Tensor& ids, std::optional<std::int64_t> padding_idx);
// Initialiser of an embedding: normal(0, 1), with zeros in the row `padding_idx`. Throws Error if there is no such row.
Init embedding_init(std::int64_t rows, std::optional<std::int64_t> padding_idx);

// torch.nn.Embedding: ids [...] -> rows of a weight [rows, width], [..., width]. The weight is initialised by normal(0,
// 1).
template <typed::Dim Rows = dyn, typed::Dim Width = dyn>
class Embedding {
 public:
  Embedding(EmbeddingOptions o = {})
    requires(Rows.number() && Width.number())
      : rows_(Rows.n), width_(Width.n), o_(o) {}
  Embedding(std::int64_t rows, std::int64_t width, EmbeddingOptions o = {})
      : rows_(extent_of<Rows>(rows)), width_(extent_of<Width>(width)), o_(o) {}
  void visit(Visitor& v) { v.parameter("weight", weight, {rows_, width_}, embedding_init(rows_, o_.padding_idx)); }
  template <class I, typed::Dim... A>
  auto operator()(const typed::Tensor<I, A...>& ids, const At& at = At::current()) const {
    require_visited("Embedding", weight);
    auto y = typed::embedding(ids, weight, at);
    return o_.padding_idx ? decltype(y)::from(rows_of(Operand(weight, at), ids, o_.padding_idx), at) : y;
  }
  lc::Tensor operator()(const lc::Tensor& ids, const At& at = At::current()) const {
    require_visited("Embedding", weight);
    return rows_of(Operand(weight, at), ids, o_.padding_idx);
  }

  typed::Tensor<float, Rows, Width> weight;

 private:
  std::int64_t rows_, width_;
  EmbeddingOptions o_;
};

// The reduction over the rows of a bag.
enum class BagMode : std::uint8_t { Sum, Mean, Max };
// Options of EmbeddingBag. Ids equal to `padding_idx` are left out of the reduction.
struct EmbeddingBagOptions {
  BagMode mode = BagMode::Mean;
  std::optional<std::int64_t> padding_idx = {};
};
// torch.nn.EmbeddingBag: the sum, mean or maximum of the rows of each bag, [bags, width]; an empty bag gives 0. Ids
// [bags, n] are bags of equal size. Ids [n] need offsets [bags]: ascending integers, the first one 0, with the position
// at which each bag begins.
class EmbeddingBag {
 public:
  EmbeddingBag(std::int64_t rows, std::int64_t width, EmbeddingBagOptions o = {}) : rows_(rows), width_(width), o_(o) {}
  void visit(Visitor& v) { v.parameter("weight", weight, {rows_, width_}, embedding_init(rows_, o_.padding_idx)); }
  lc::Tensor operator()(const lc::Tensor& ids, const At& at = At::current()) const {
    return of_rows(Operand(ids, at), {});
  }
  // Multiplies each row by its weight, a tensor of the shape of ids. Throws Error if the mode is not Sum.
  lc::Tensor weighted(const lc::Tensor& ids, const lc::Tensor& per_sample_weights, const At& at = At::current()) const {
    return of_rows(Operand(ids, at), per_sample_weights);
  }
  // Bags given by offsets. Throws Error if the mode is Max.
  lc::Tensor operator()(const lc::Tensor& ids, const lc::Tensor& offsets, const At& at = At::current()) const {
    return of_offsets(Operand(ids, at), offsets);
  }

  lc::Tensor weight;

 private:
  lc::Tensor of_rows(Operand ids, const lc::Tensor& weights) const;
  lc::Tensor of_offsets(Operand ids, const lc::Tensor& offsets) const;
  std::int64_t rows_, width_;
  EmbeddingBagOptions o_;
};

// torch.nn.CosineSimilarity: the cosine of the angle between two tensors along axis `dim`.
struct CosineSimilarity {
  int dim = 1;
  double eps = 1e-8;
  void visit(Visitor&) {}
  lc::Tensor operator()(const lc::Tensor& a, const lc::Tensor& b, const At& at = At::current()) const {
    return lc::cosine_similarity(Operand(a, at), Operand(b, at), dim, eps);
  }
};
// torch.nn.PairwiseDistance: the p-norm of a - b + eps over the last axis.
struct PairwiseDistance {
  double p = 2, eps = 1e-6;
  bool keepdim = false;
  void visit(Visitor&) {}
  lc::Tensor operator()(const lc::Tensor& a, const lc::Tensor& b, const At& at = At::current()) const {
    return lc::norm(Operand(Operand(a, at) - Operand(b, at) + eps, at), p, {-1}, keepdim);
  }
};

}  // namespace lc::nn
