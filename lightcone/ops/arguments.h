// Argument types of operations other than tensors: PyTorch's "Tensor or Number", optional operands, one or several
// axes, and the graph of a new tensor.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "lightcone/core/tensor.h"

namespace lc {

// A tensor or a number. As in PyTorch, the kind of the literal counts, not its value: `true` is a bool, 2 an integer,
// 2.0 a float. A number of a higher kind than the tensor's promotes both to i64 or f32 (i64 * 2.0 is f32, u8 * 2 is
// u8); otherwise the tensor's element type is kept, including 16-bit floats.
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
  // Returns the element type of the result if a tensor of type `t` is combined with this number.
  DType beside(DType t) const;

 protected:
  explicit TensorOrNumber(std::nullopt_t) : at_("", 0) {}

 private:
  Tensor tensor_;
  std::optional<Scalar> number_;
  bool bool_ = false;
  SourceLocation at_;
};
// Like TensorOrNumber, with {} for PyTorch's None.
class OptionalTensorOrNumber : public TensorOrNumber {
 public:
  using TensorOrNumber::TensorOrNumber;
  OptionalTensorOrNumber() : TensorOrNumber(std::nullopt) {}
  OptionalTensorOrNumber(const TensorOrNumber& given) : TensorOrNumber(given) {}
  bool given() const { return is_number() || tensor().defined(); }
};

// An optional tensor: {} or an undefined Tensor means none.
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

// A list of integers or a single one: 1, {0, 2}. Negative axes count from the end; an empty list of axes means all.
class IntList : public std::vector<int> {
 public:
  IntList() = default;
  IntList(int one) : std::vector<int>{one} {}
  IntList(std::initializer_list<int> some) : std::vector<int>(some) {}
  IntList(std::vector<int> some) : std::vector<int>(std::move(some)) {}
};
using Axes = IntList;

// The graph to which a new tensor is added: a Graph, a Session, or any tensor of it.
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
