// Graph: an append-only DAG of immutable nodes. NodeIds are a topological order, equal nodes are
// the same node, and nothing is ever removed: a pass builds a new graph (copy_graph() in
// passes/compiler.h). So handles stay valid through every compile, and duplicates and dangling
// edges cannot exist.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/attributes.h"
#include "lightcone/core/dtype.h"
#include "lightcone/core/error.h"
#include "lightcone/core/op.h"
#include "lightcone/core/view.h"

namespace lc {

using NodeId = std::uint32_t;

// How a consumer reads a producer.
struct Edge {
  NodeId node = 0;
  View view;
  friend bool operator==(const Edge&, const Edge&) = default;
};

class Kernel;       // what a back end puts in place of nodes: device/kernel.h
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
  Shape shape = {};        // of the row-major result
  int axis = 0;            // of a reduction;  Result: which one
  bool parameter = false;  // Input: it stays the same from run to run
  double value = 0;        // Constant
  Dim index = {};          // Index: an expression over i0, i1, ...
  std::string name = {};   // Input;  Kernel: what pictures and profiles call it
  std::shared_ptr<const Kernel> kernel = {};
  std::shared_ptr<const Composite> composite = {};
  Attributes attributes = {};            // of the composite
  std::vector<TensorType> results = {};  // Composite: where there are several, which are read by Result nodes
  Location where = {};                   // not part of a node's identity
};

class Tensor;
struct Operand;

// A number as it was written: whole ones keep all of their 64 bits, which above INT64_MAX are those of a negative one.
struct Scalar {
  double value;
  std::optional<std::int64_t> whole;
  template <std::integral T>
  Scalar(T v) : value(static_cast<double>(v)), whole(static_cast<std::int64_t>(v)) {}
  template <std::floating_point T>
  Scalar(T v) : value(static_cast<double>(v)) {}
};

// After a run `state` (an Input) holds what `next` computed.
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

  // A named value given before each run (or once, for weights and state).
  Tensor input(std::string_view name, Shape shape, DType dtype = DType::F32,
               const SourceLocation& at = SourceLocation::current(), bool parameter = false);
  // An input that stays the same from run to run, until a program loads it anew.
  Tensor parameter(std::string_view name, Shape shape, DType dtype = DType::F32,
                   const SourceLocation& at = SourceLocation::current());
  // Exact for whole numbers of 64 bits in an integer type, too; a type that does not hold the number has it modulo
  // 2^bits where it is negative, and its nearest number otherwise.
  Tensor constant(Scalar value, DType dtype = DType::F32);
  // The integer `expression` over i0, i1, ... at each place of `shape`; arange(n) is {n}, i0.
  Tensor index(Shape shape, Dim expression, DType dtype = DType::I64);

  void output(std::string_view name, const Operand& value);
  // `state` must be an input that no other assignment writes.
  void assign(const Operand& state, const Operand& next);

  // What the rest of the library needs.
  // Infers shape and dtype; returns the existing node when there is one. Edges become simple ones (View::simple()).
  NodeId add(Node n);
  Edge simple(Edge e);
  NodeId adopt(const Node& n, std::vector<Edge> in);  // the same node of another graph
  const Node& operator[](NodeId id) const;
  std::size_t size() const;
  std::span<const Root> roots() const;
  void root(std::string_view name, Edge e);
  std::span<const Assignment> assignments() const;
  void assignment(NodeId state, Edge next);
  const Derivative* derivative(NodeId of) const;  // null: that of its operation
  void derivative(NodeId of, std::shared_ptr<const Derivative> d);
  std::vector<bool> live() const;      // reaches a root or an assignment
  std::vector<int> uses() const;       // by live nodes, roots and assignments
  std::string str() const;             // a line a node: what tests compare
  std::string dot() const;             // for Graphviz; constants are written into their readers
  std::string label(NodeId id) const;  // a few words for a picture

  friend bool operator==(const Graph& a, const Graph& b);  // the same nodes under the same ids

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  struct Recycle {
    void operator()(Impl* impl) const noexcept;
  };
  std::unique_ptr<Impl, Recycle> impl_;  // heap-pinned: handles survive a move of the Graph
};

// Shape and dtype of a node from its operands; throws with the sentence a user reads.
void infer(Node& n, const Graph& g);

}  // namespace lc
