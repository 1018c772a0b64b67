// The reverse sweep over a graph.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "lightcone/core/composite.h"

namespace lc {

class ReverseSweep {
 public:
  // Derivatives with respect to nodes. `stop`: they count as independent of each other, nothing passes through one.
  ReverseSweep(Graph& g, const std::vector<NodeId>& wrt, bool stop);
  void seed(const Tensor& output, const Tensor& cotangent);
  void run();
  // In the shape of the node; undefined where nothing arrived.
  Tensor cotangent(NodeId wrt) const;
  // Nodes that passed nothing on to an operand, though they had a cotangent themselves.
  const std::set<NodeId>& flat() const { return flat_; }

 private:
  struct Pending {
    // What arrived by one way of reading one result.
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
  std::map<NodeId, bool> depends_;  // on one of wrt; what was not asked has no entry
  std::map<NodeId, Pending> pending_;
  std::map<NodeId, Tensor> totals_;
  std::set<NodeId> flat_;
};

}  // namespace lc
