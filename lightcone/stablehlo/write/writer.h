// Writes the nodes of one graph into one block: @main, or the body of a loop.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lightcone/stablehlo/write.h"
#include "lightcone/stablehlo/write/builder.h"
#include "lightcone/stablehlo/write/concat.h"
#include "lightcone/stablehlo/write/products.h"
#include "lightcone/stablehlo/write/reductions.h"

namespace lc::stablehlo {

struct WriteOptions {
  const Bindings& sizes;
  Precision products;
  UnboundSizes unbound;
  // Nodes that are written as operations of their own ("lightcone.layer_norm"), for writers of other formats, which
  // have an operation for them. Null: everything is written in StableHLO's operations.
  std::function<bool(const Node&)> named = {};
};
// The prefix of the operations that `named` asks for.
inline constexpr std::string_view kNamed = "lightcone.";

class Writer {
 public:
  // `g` is a graph from prepare().
  Writer(Builder& b, const Graph& g, const WriteOptions& options);
  void give(NodeId input, ValueId v) { values_[input] = {v}; }
  // Writes everything that these edges need and returns their values. Other nodes are omitted.
  std::vector<ValueId> write(std::span<const Edge> results);

  Builder& builder() { return b_; }
  const Graph& graph() const { return g_; }
  const WriteOptions& options() const { return options_; }
  ValueId value(const Edge& e);
  // Returns all results of a node that has been written.
  const std::vector<ValueId>& results(NodeId id) const { return values_.at(id); }

 private:
  using Plan = std::variant<std::monostate, Product, Reduction, Padding, Joint>;
  const Plan& plan(NodeId id);
  std::vector<NodeId> operands_of(NodeId id);
  std::vector<ValueId> written(NodeId id);

  Builder& b_;
  const Graph& g_;
  const WriteOptions& options_;
  std::vector<int> uses_;
  std::map<NodeId, Plan> plans_;
  std::map<NodeId, std::vector<ValueId>> values_;
  std::map<NodeId, std::vector<std::pair<View, ValueId>>> seen_;  // views of values
};

bool pads(const View& v);  // reads zeros outside of its base

// ---- one kind of node each -------------------------------------------------------------------------------------

ValueId write_view(Builder& b, ValueId x, const View& v);  // views.cpp
ValueId write_elementwise(Builder& b, const Node& n, const std::vector<ValueId>& in, bool divides_by_zero);
std::vector<ValueId> write_composite(Writer& w, NodeId id);
ValueId write_random_bits(Builder& b, const Node& n, ValueId step);
std::vector<ValueId> write_loop(Writer& w, const Node& n);

// Returns the graph with the sizes bound and with composites that are not written as themselves replaced by their
// definition. Throws Error for sizes without a value unless they may stay open.
Graph prepare(const Graph& g, const WriteOptions& options);
// Throws Error for a size that no extent of the graph uses: its name is probably misspelled.
void check_names(const Graph& g, const Bindings& sizes);
// Writes a graph as export_stablehlo() does.
StableHloExport write_module(const Graph& g, const WriteOptions& options);
// Writes a node under its own name.
std::vector<ValueId> write_named(Writer& w, const Node& n);
// Returns true for composites that are written as themselves.
bool is_written(const Node& n);

}  // namespace lc::stablehlo
