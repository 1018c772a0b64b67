// Tensor: a handle to an edge that nobody consumes yet. 16 bytes, trivially copyable, no data.
// Models, definitions of composites, gradients and right-hand sides of rules are all written
// with these functions; ops/ builds PyTorch's vocabulary on them.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

struct GraphSlot;  // graph_impl.h

// The 5 of x[5], and the line where it stands (see Operand).
struct IndexAt {
  Dim index;
  SourceLocation at;
  IndexAt(const std::convertible_to<Dim> auto& i, const SourceLocation& at = SourceLocation::current())
      : index(i), at(at) {}
};

class Tensor {
 public:
  Tensor() = default;  // refers to nothing; using it is an Error
  Tensor(const Graph& graph, const Edge& edge);

  Edge edge() const;
  View view() const;
  const Node& node() const;
  Shape shape() const;
  int rank() const;
  Dim extent(int axis) const;                        // negative axes count from the end
  Dim size(int axis) const { return extent(axis); }  // PyTorch's names of extent() and rank()
  int dim() const { return rank(); }
  DType dtype() const;
  Graph& graph() const;
  Graph::Impl& impl() const;
  bool defined() const { return slot_ != nullptr; }

  // Views. As in PyTorch one extent of reshape() and view() may be -1, and -1 in expand() keeps an extent.
  using At = SourceLocation;
  Tensor permute(std::vector<int> axes, const At& at = At::current()) const;
  Tensor transpose(int a, int b, const At& at = At::current()) const;
  Tensor expand(Shape to, const At& at = At::current()) const;
  Tensor reshape(Shape to, const At& at = At::current()) const;
  Tensor view(Shape to, const At& at = At::current()) const { return reshape(std::move(to), at); }
  Tensor t(const At& at = At::current()) const;  // of a matrix; a vector and a number stay as they are
  Tensor unsqueeze(int axis, const At& at = At::current()) const;
  Tensor squeeze(int axis, const At& at = At::current()) const;
  // Elements [begin, end) of an axis, every step-th. Negative numbers count from the end; past the end is an Error.
  Tensor slice(int axis, Dim begin, Dim end, std::int64_t step = 1, const At& at = At::current()) const;
  Tensor select(int axis, Dim index, const At& at = At::current()) const;  // the axis goes away
  Tensor operator[](const IndexAt& i) const { return select(0, i.index, i.at); }
  Tensor flip(int axis, const At& at = At::current()) const;
  Tensor pad(int axis, Dim before, Dim after, const At& at = At::current()) const;  // with zeros
  Tensor unfold(int axis, Dim size, std::int64_t stride = 1, std::int64_t dilation = 1,
                const At& at = At::current()) const;
  Tensor with(const View& v) const;
  Tensor to(DType dtype, const At& at = At::current()) const;  // the numbers in another element type

  // Makes the value a result of the graph, named `name` or "out<n>".
  Tensor retrieve(std::string_view name = {}) const;

 private:
  friend class Graph;
  GraphSlot* slot_ = nullptr;
  std::uint32_t edge_ = 0, generation_ = 0;
};
static_assert(std::is_trivially_copyable_v<Tensor>);

// A tensor argument. The conversion happens at the call, so it knows the caller's line: this is
// how operators, which cannot take a defaulted argument, put it into nodes and errors.
struct Operand {
  Tensor tensor;
  SourceLocation at;
  Operand(Tensor t, const SourceLocation& at = SourceLocation::current()) : tensor(t), at(at) {}
  const Tensor* operator->() const { return &tensor; }
  operator Tensor() const { return tensor; }
};

// The vocabulary of the core: operands have one shape and (mostly) one dtype. PyTorch's
// broadcasting, promoting functions of the same names live in ops/.
namespace prim {
// The twelve.
Tensor log2(Operand a);
Tensor exp2(Operand a);
Tensor sin(Operand a);
Tensor sqrt(Operand a);
Tensor recip(Operand a);
Tensor add(Operand a, Operand b);
Tensor mul(Operand a, Operand b);
Tensor mod(Operand a, Operand b);  // sign of the dividend, like C; x mod 0 is 0 for integers
Tensor less_than(Operand a, Operand b);
Tensor sum_reduce(Operand a, int axis);  // the axis goes away
Tensor max_reduce(Operand a, int axis);
Tensor contiguous(Operand a);
Tensor cast(Operand a, DType to);  // Contiguous into another dtype; no node when it has it already

// The composites.
Tensor where(Operand condition, Operand a, Operand b);
Tensor maximum(Operand a, Operand b);
Tensor minimum(Operand a, Operand b);
Tensor div(Operand a, Operand b);
Tensor pow(Operand a, Operand b);
Tensor equal(Operand a, Operand b);
Tensor exp(Operand a);
Tensor cos(Operand a);
Tensor bitwise_and(Operand a, Operand b);  // of integers in two's complement, or of bool
Tensor bitwise_or(Operand a, Operand b);
Tensor bitwise_xor(Operand a, Operand b);
Tensor bitcast(Operand a, DType to);  // the bits of each element, as another type of the same size
}  // namespace prim

Tensor full(const Graph& g, Shape shape, Scalar value, DType dtype = DType::F32);
Tensor full_like(Operand a, Scalar value);  // shape and dtype of a
Tensor apply(Op op, std::vector<Tensor> in, const SourceLocation& at, Node attributes = {});
int wrap_axis(int axis, int rank, const Shape& shape, const char* op);  // -1 is the last; Error when there is none

}  // namespace lc
