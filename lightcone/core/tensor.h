// Tensor: a handle to an edge without a consumer. It is 16 bytes, trivially copyable and holds no data. Models,
// definitions of composites, gradients and right-hand sides of rewrite rules are written with these functions; ops/
// builds PyTorch's vocabulary on them.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

struct GraphSlot;  // graph_impl.h

// The index of x[5] with its source line (see Operand).
struct IndexAt {
  Dim index;
  SourceLocation at;
  IndexAt(const std::convertible_to<Dim> auto& i, const SourceLocation& at = SourceLocation::current())
      : index(i), at(at) {}
};

class Tensor {
 public:
  Tensor() = default;  // refers to nothing; using it throws Error
  Tensor(const Graph& graph, const Edge& edge);

  Edge edge() const;
  View view() const;
  const Node& node() const;  // the producer
  Shape shape() const;
  int rank() const;
  Dim extent(int axis) const;                        // a negative axis counts from the end
  Dim size(int axis) const { return extent(axis); }  // PyTorch's name for extent()
  int dim() const { return rank(); }                 // PyTorch's name for rank()
  DType dtype() const;                               // element type
  Graph& graph() const;
  Graph::Impl& impl() const;
  bool defined() const { return slot_ != nullptr; }

  // Views. As in PyTorch, one extent of reshape() and view() may be -1, and -1 in expand() keeps an extent.
  using At = SourceLocation;
  Tensor permute(std::vector<int> axes, const At& at = At::current()) const;  // new axis i is axes[i]
  Tensor transpose(int a, int b, const At& at = At::current()) const;         // swaps two axes
  Tensor expand(Shape to, const At& at = At::current()) const;                // repeats axes of extent 1
  Tensor reshape(Shape to, const At& at = At::current()) const;               // keeps row-major order
  Tensor view(Shape to, const At& at = At::current()) const { return reshape(std::move(to), at); }
  Tensor t(const At& at = At::current()) const;                    // transposes a matrix; lower ranks are unchanged
  Tensor unsqueeze(int axis, const At& at = At::current()) const;  // inserts an axis of extent 1
  Tensor squeeze(int axis, const At& at = At::current()) const;  // removes an axis; throws Error unless its extent is 1
  // Reads elements [begin, end) of an axis, every step-th. Negative numbers count from the end; throws Error past the
  // end.
  Tensor slice(int axis, Dim begin, Dim end, std::int64_t step = 1, const At& at = At::current()) const;
  Tensor select(int axis, Dim index, const At& at = At::current()) const;  // removes the axis
  Tensor operator[](const IndexAt& i) const { return select(0, i.index, i.at); }
  Tensor flip(int axis, const At& at = At::current()) const;                        // reverses an axis
  Tensor pad(int axis, Dim before, Dim after, const At& at = At::current()) const;  // with zeros
  // Windows of an axis, with a new last axis inside the window; see View::unfold().
  Tensor unfold(int axis, Dim size, std::int64_t stride = 1, std::int64_t dilation = 1,
                const At& at = At::current()) const;
  Tensor with(const View& v) const;                            // reads the same node through v
  Tensor to(DType dtype, const At& at = At::current()) const;  // converts the element type

  // Makes the value an output of the graph, named `name` or "out<n>".
  Tensor retrieve(std::string_view name = {}) const;

 private:
  friend class Graph;
  GraphSlot* slot_ = nullptr;
  std::uint32_t edge_ = 0, generation_ = 0;
};
static_assert(std::is_trivially_copyable_v<Tensor>);

// A tensor argument with its source line. The conversion happens at the call and so records the caller's line even for
// operators, which cannot take a defaulted argument.
struct Operand {
  Tensor tensor;
  SourceLocation at;
  Operand(Tensor t, const SourceLocation& at = SourceLocation::current()) : tensor(t), at(at) {}
  const Tensor* operator->() const { return &tensor; }
  operator Tensor() const { return tensor; }
};

// Operations of the core: operands have one shape and (mostly) one dtype. Broadcasting and type-promoting functions of
// the same names are in ops/.
namespace prim {
// The primitives.
Tensor log2(Operand a);
Tensor exp2(Operand a);
Tensor sin(Operand a);
Tensor sqrt(Operand a);
Tensor recip(Operand a);
Tensor add(Operand a, Operand b);
Tensor mul(Operand a, Operand b);
Tensor mod(Operand a, Operand b);  // sign of the dividend, as in C; x mod 0 is 0 for integers
Tensor less_than(Operand a, Operand b);
Tensor sum_reduce(Operand a, int axis);  // removes the axis
Tensor max_reduce(Operand a, int axis);
Tensor contiguous(Operand a);
Tensor cast(Operand a, DType to);  // Contiguous with another dtype; returns `a` if it has it already

// The elementwise composites; composites/composites.h has the others.
Tensor where(Operand condition, Operand a, Operand b);
Tensor maximum(Operand a, Operand b);
Tensor minimum(Operand a, Operand b);
Tensor div(Operand a, Operand b);
Tensor pow(Operand a, Operand b);
Tensor equal(Operand a, Operand b);
Tensor exp(Operand a);
Tensor cos(Operand a);
Tensor floor(Operand a);
Tensor round(Operand a);                   // ties to even
Tensor bitwise_and(Operand a, Operand b);  // two's complement integers or bool
Tensor bitwise_or(Operand a, Operand b);
Tensor bitwise_xor(Operand a, Operand b);
Tensor bitcast(Operand a, DType to);  // reinterprets the bits as another type of the same size
}  // namespace prim

Tensor full(const Graph& g, Shape shape, Scalar value, DType dtype = DType::F32);
Tensor full_like(Operand a, Scalar value);  // with shape and dtype of a
Tensor apply(Op op, std::vector<Tensor> in, const SourceLocation& at, Node attributes = {});
// Maps a negative axis to its index. Throws Error if the axis is out of range.
int wrap_axis(int axis, int rank, const Shape& shape, const char* op);

}  // namespace lc
