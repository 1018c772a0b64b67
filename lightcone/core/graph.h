// Graph: an append-only DAG of immutable nodes. NodeIds are a topological order, equal nodes are the same node, and
// nothing is ever removed: a pass builds a new graph (copy_graph() in passes/compiler.h). So handles stay valid through
// every compile, and duplicates and dangling edges cannot exist.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/core/attributes.h"
#include "lightcone/core/dtype.h"
#include "lightcone/core/op.h"
#include "lightcone/core/view.h"

namespace lc {

using NodeId = std::uint32_t;

// An edge from a consumer to its producer, with the view through which it is read.
struct Edge {
  NodeId node = 0;
  View view;
  friend bool operator==(const Edge&, const Edge&) = default;
};

class Kernel;       // a back end's replacement for nodes: device/kernel.h
struct Composite;   // composite.h
struct Derivative;  // composite.h

struct TensorType {
  DType dtype = DType::F32;
  Shape shape = {};
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

struct Node {
  Op op = Op::Input;
  DType dtype = DType::F32;
  std::vector<Edge> in = {};
  Shape shape = {};        // shape of the row-major result
  int axis = 0;            // reduction: its axis; Result: its number
  bool parameter = false;  // Input: unchanged between runs
  double value = 0;        // Constant
  Dim index = {};          // Index: an expression over i0, i1, ...
  std::string name = {};   // Input: its name; Kernel: its label in graphs and profiles
  std::shared_ptr<const Kernel> kernel = {};
  std::shared_ptr<const Composite> composite = {};
  Attributes attributes = {};            // Composite
  std::vector<TensorType> results = {};  // Composite with several results, which Result nodes read
  Location where = {};                   // excluded from a node's identity
};

class Tensor;
struct Operand;

// A literal number. Integers keep all 64 bits; those above INT64_MAX are stored as their two's complement.
struct Scalar {
  double value;
  std::optional<std::int64_t> whole;
  template <std::integral T>
  Scalar(T v) : value(static_cast<double>(v)), whole(static_cast<std::int64_t>(v)) {}
  template <std::floating_point T>
  Scalar(T v) : value(static_cast<double>(v)) {}
};

// After a run `state` (an Input) holds the value computed by `next`.
struct Assignment {
  NodeId state;
  Edge next;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};
struct Root {
  std::string name;
  Edge edge;
  friend bool operator==(const Root&, const Root&) = default;
};

class Graph {
 public:
  Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();
  Graph clone() const;

  // Adds a named input, set before each run (or once, if `parameter`). Throws Error if the name is empty or already
  // used, or if an extent may be negative.
  Tensor input(std::string_view name, Shape shape, DType dtype = DType::F32,
               const SourceLocation& at = SourceLocation::current(), bool parameter = false);
  // Adds an input that stays unchanged between runs until a program loads it again.
  Tensor parameter(std::string_view name, Shape shape, DType dtype = DType::F32,
                   const SourceLocation& at = SourceLocation::current());
  // Adds a scalar constant. Whole numbers of 64 bits are exact in integer types. In an unsigned type a negative number
  // wraps modulo 2^bits; any other number out of range becomes the nearest representable one.
  Tensor constant(Scalar value, DType dtype = DType::F32);
  // The integer `expression` over i0, i1, ... at each index of `shape`; arange(n) has shape {n} and expression i0.
  Tensor index(Shape shape, Dim expression, DType dtype = DType::I64);

  // Makes `value` a result of the graph. Throws Error if the name is already used.
  void output(std::string_view name, const Operand& value);
  // Stores `next` in `state` after each run. `state` must be an input that no other assignment writes.
  void assign(const Operand& state, const Operand& next);

  // Interface for passes and compilers. add() infers shape and dtype and returns the existing node if there is one.
  // Edges become simple ones (View::simple()).
  NodeId add(Node n);
  Edge simple(Edge e);
  NodeId adopt(const Node& n, std::vector<Edge> in);  // copies a node from another graph
  const Node& operator[](NodeId id) const;
  std::size_t size() const;
  std::span<const Root> roots() const;
  void root(std::string_view name, Edge e);
  std::span<const Assignment> assignments() const;
  void assignment(NodeId state, Edge next);
  const Derivative* derivative(NodeId of) const;  // null: use the operation's rule
  void derivative(NodeId of, std::shared_ptr<const Derivative> d);
  std::vector<bool> live() const;      // true if a root or an assignment depends on the node
  std::vector<int> uses() const;       // number of reads by live nodes, roots and assignments
  std::string str() const;             // one line per node; tests compare it
  std::string dot() const;             // for Graphviz; constants are shown inside their readers
  std::string label(NodeId id) const;  // a short description for drawings

  friend bool operator==(const Graph& a, const Graph& b);  // same nodes with the same ids

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  struct Recycle {
    void operator()(Impl* impl) const noexcept;
  };
  std::unique_ptr<Impl, Recycle> impl_;  // heap-allocated: handles survive a move of the Graph
};

// Infers shape and dtype of a node from its operands. Throws Error with the message that users read.
void infer(Node& n, const Graph& g);

}  // namespace lc
