// What operations take beside tensors: numbers where PyTorch says "Tensor or Number", operands that may be left out,
// one axis or several, and the graph in which something new begins.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "lightcone/core/tensor.h"

namespace lc {

// A tensor or a number. As in PyTorch it is the kind in which a number is written that counts, never its value: `true`
// is a bool, 2 an integer, 2.0 a floating number. A number of a higher kind than the tensor beside it makes both i64 or
// f32 (i64 * 2.0 is f32, u8 * 2 is u8); any other takes the tensor's element type, and halves stay halves.
class TensorOrNumber {
 public:
  TensorOrNumber(const Operand& t) : tensor_(t.tensor), at_(t.at) {}
  TensorOrNumber(const Tensor& t, const SourceLocation& at = SourceLocation::current()) : tensor_(t), at_(at) {}
  template <class T>
    requires(std::integral<T> || std::floating_point<T>)
  TensorOrNumber(T v, const SourceLocation& at = SourceLocation::current())
      : number_(v), bool_(std::same_as<T, bool>), at_(at) {}

  bool is_number() const { return number_.has_value(); }
  const Scalar& number() const { return *number_; }
  const Tensor& tensor() const { return tensor_; }
  const SourceLocation& at() const { return at_; }
  // The element type that a tensor of type `t` has beside this number.
  DType beside(DType t) const;

 protected:
  explicit TensorOrNumber(std::nullopt_t) : at_("", 0) {}

 private:
  Tensor tensor_;
  std::optional<Scalar> number_;
  bool bool_ = false;
  SourceLocation at_;
};
// The same where PyTorch also takes None, which is {}.
class OptionalTensorOrNumber : public TensorOrNumber {
 public:
  using TensorOrNumber::TensorOrNumber;
  OptionalTensorOrNumber() : TensorOrNumber(std::nullopt) {}
  OptionalTensorOrNumber(const TensorOrNumber& given) : TensorOrNumber(given) {}
  bool given() const { return is_number() || tensor().defined(); }
};

// A tensor that may be left out: {}, or a Tensor that refers to nothing.
class OptionalOperand {
 public:
  OptionalOperand() = default;
  OptionalOperand(const Operand& t) : tensor_(t.tensor) {}
  OptionalOperand(const Tensor& t) : tensor_(t) {}
  bool given() const { return tensor_.defined(); }
  const Tensor& operator*() const { return tensor_; }
  const Tensor* operator->() const { return &tensor_; }

 private:
  Tensor tensor_;
};

// One number or several: 1, {0, 2}. As axes negative ones count from the end, and none mean all.
class IntList : public std::vector<int> {
 public:
  IntList() = default;
  IntList(int one) : std::vector<int>{one} {}
  IntList(std::initializer_list<int> some) : std::vector<int>(some) {}
  IntList(std::vector<int> some) : std::vector<int>(std::move(some)) {}
};
using Axes = IntList;

// The graph in which a new tensor is to be: a Graph, a Session, or any tensor of it.
struct GraphOf {
  Graph& graph;
  SourceLocation at;
  GraphOf(Graph& g, const SourceLocation& at = SourceLocation::current()) : graph(g), at(at) {}
  GraphOf(const Tensor& t, const SourceLocation& at = SourceLocation::current()) : graph(t.graph()), at(at) {}
  GraphOf(const Operand& t) : graph(t->graph()), at(t.at) {}
  template <class Owner>
    requires requires(Owner& o) {
      { o.graph() } -> std::same_as<Graph&>;
    } && (!std::derived_from<Owner, Tensor>)
  GraphOf(Owner& owner, const SourceLocation& at = SourceLocation::current()) : graph(owner.graph()), at(at) {}
};

}  // namespace lc
