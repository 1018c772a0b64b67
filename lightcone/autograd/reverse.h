// ReverseSweep: reverse-mode differentiation over a graph.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "lightcone/core/composite.h"

namespace lc {

class ReverseSweep {
 public:
  // Differentiates with respect to `wrt`. If `stop`, cotangents do not propagate through nodes of `wrt`, which count as
  // independent of each other.
  ReverseSweep(Graph& g, const std::vector<NodeId>& wrt, bool stop);
  void seed(const Tensor& output, const Tensor& cotangent);
  void run();
  // Returns the cotangent in the shape of the node; undefined if none arrived.
  Tensor cotangent(NodeId wrt) const;
  // Nodes that received a cotangent but passed none on to an operand.
  const std::set<NodeId>& flat() const { return flat_; }

 private:
  struct Pending {
    // The sum of cotangents for one result read through one view.
    struct Part {
      int result;
      View view;
      Tensor sum;
    };
    std::vector<Part> parts;
  };
  void mark(const Edge& from);
  bool wanted(const Edge& e) const;
  void add(const Edge& to, const Tensor& cotangent, int result = 0);
  Tensor collect(const Pending& p, int result) const;
  void visit(NodeId id, const Pending& p);
  void through_definition(NodeId id, const std::vector<Tensor>& cotangents);
  std::vector<Tensor> operands(std::span<const Edge> edges) const;

  Graph& g_;
  std::set<NodeId> wrt_;
  bool stop_;
  std::map<NodeId, bool> depends_;  // depends on one of wrt; computed on demand
  std::map<NodeId, Pending> pending_;
  std::map<NodeId, Tensor> totals_;
  std::set<NodeId> flat_;
};

}  // namespace lc
