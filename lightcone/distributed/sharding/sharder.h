// The graph that shard() makes, while it makes it.
//
// A graph computes one rank's part along the mesh axes of its ranks, and all parts along the serial axes: for these
// each value has several local tensors, one for each place, and exchanges are sums and concatenations of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/distributed/sharding/rules.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/distributed/sharding/sharding.h"
#include "lightcone/passes/compiler.h"

namespace lc::distributed {

// The local tensors of one value: one for each serial place, or a single one if they are the same.
using Locals = std::vector<Tensor>;

// A value of the whole graph. What is divided may be a part of one of its axes, as texts and their length are one axis
// of rows: then it is held with more axes than it has.
struct Held {
  Locals local;
  Sharding s;
  View view;  // from the axes of `local` to the value's
};

// What a node of the new graph was made for.
struct Purpose {
  NodeId node = 0;  // a node of the whole graph
  int place = -1;   // the serial place; -1: all of them
};

// Computes exchanges between the parts of a value: by collectives along the ranks' axes, and in this graph along the
// serial ones. Values arrive and leave as their shardings say.
class Exchanger {
 public:
  // `mesh` has the ranks' axes and then the serial ones.
  Exchanger(const Collectives& ranks, const Mesh& mesh, PassLog& log);

  int places() const { return places_; }  // serial places
  bool is_serial(int axis) const { return axis >= real_axes_; }
  bool any_serial(const Axes& axes) const;
  // The place of this graph's part along `axes`, at a serial place.
  int place(int serial_place, const Axes& axes) const;
  // Tensors that are the same at all serial places become one.
  void simplify(Held& h) const;

  // Adds up parts along these axes; `h` is partial along them no more.
  void add_up(Held& h, const Axes& axes, ReduceOp r = ReduceOp::Sum);
  // The same along one axis, but each part gets its part of `axis` of the tensor.
  void scatter(Held& h, int mesh_axis, std::size_t axis);
  // Every part gets the whole of an axis of the tensor; `again`, if it had it before and did not keep it.
  void gather(Held& h, std::size_t axis, bool again);

 private:
  Tensor at(const Locals& l, int place) const { return l[l.size() == 1 ? 0 : static_cast<std::size_t>(place)]; }
  std::vector<std::string> names(const Axes& axes) const;
  std::vector<int> serial_group(int serial_place, int axis) const;
  Tensor added(const std::vector<Tensor>& parts, ReduceOp r) const;
  Tensor gathered(const Tensor& x, const Axes& axes, std::size_t axis, bool again);
  Tensor counted(const char* what, Tensor t);

  const Collectives& ranks_;
  const Mesh& mesh_;
  PassLog& log_;
  int real_axes_, places_;
};

// How an operation is divided.
struct Plan {
  ShardingRule rule;
  std::vector<Edge> in;    // operands, and
  std::vector<Shape> out;  // results, with the axes that the rule has: some axes of the operation as several
  int own_labels = 0;      // labels from here on are those of the inner parts of axes
  std::vector<Axes> axes;  // by label
  Axes kept;               // sums of parts that the operation passes on
  // The label of rows that come to the ranks of a table and whose results return: a mesh axis divides the table in
  // their place. -1: none do.
  int travels = -1;
  bool uses(int mesh_axis) const;
  std::vector<Axes> of(const std::vector<int>& labels) const;
};

class Sharder {
 public:
  Sharder(const Graph& src, const Collectives& ranks, const ShardSpecs& specs, const ShardOptions& options,
          PassLog& log);
  Graph run();
  // For each node of the new graph.
  const std::vector<Purpose>& purposes() const { return purposes_; }

 private:
  bool is_state(NodeId id) const;
  void read_specs();
  void find_hints();
  void hint(NodeId id, const Sharding& s);
  Sharding through(const View& view, const std::vector<Axes>& axes) const;

  // sharder.cpp: nodes
  void node(NodeId id);
  void input(NodeId id);
  void operation(NodeId id);
  void move_index(const Node& n, const Plan& p, int label, std::vector<Locals>& in) const;
  std::vector<Tensor> emit(const Node& n, const std::vector<Tensor>& in);
  std::vector<Tensor> emit_local(const Node& n, const Plan& p, const std::vector<Tensor>& in, int place);
  bool is_exchange(const Node& n) const;
  void made_for(NodeId node, int place);

  // loops.cpp
  // The body of a loop on one rank.
  struct Body {
    Graph graph;
    std::vector<NodeId> inputs;
    std::vector<Sharding> outputs;  // how they lie before those of the states are spread as the states
    int exchanges = 0;              // in one step
    double bytes = 0;               // the results of these
    PassLog log;
  };
  void loop(NodeId id);
  std::vector<Sharding> body_inputs(const Node& n, bool captures) const;
  Body body_of(const LoopBody& loop, const std::vector<Sharding>& given, PassLog& log) const;
  Body settled_body(const Node& n, std::vector<Sharding>& given) const;
  bool adapt(Sharding& state, const Sharding& next, const Shape& shape) const;
  void note_loop(const Node& n, const std::vector<Sharding>& given, const Body& body);

  // choice.cpp: what is divided
  Plan plan(NodeId id);
  std::vector<std::size_t> by_weight(const Node& n) const;
  void offer(const Node& n, Plan& p, int label, const Axes& axes, std::optional<std::size_t> operand) const;
  void keep_sums(const Node& n, Plan& p) const;
  bool is_factor(const Node& n, std::size_t k) const;
  void let_rows_travel(const Node& n, Plan& p) const;
  void split_labels(const Node& n, Plan& p) const;
  void note_whole(const Node& n);
  void note_whole_parameters();

  // operands.cpp
  std::vector<int> shards(const Sharding& s) const;
  const Held& held(const Edge& e) const { return to_[e.node][0]; }
  View view_of(const Edge& e) const { return held(e).view.then(e.view); }
  std::vector<Axes> seen(const Edge& e) const;
  Locals at(const Edge& e, const std::vector<Axes>& want, const Axes& kept);
  void add_up(Held& h, const View& view, const std::vector<Axes>& want, const Axes& kept);
  bool scatter(Held& h, const View& view, const std::vector<Axes>& want, int mesh_axis);

  const Graph& src_;
  const Collectives& ranks_;
  const ShardSpecs& specs_;
  const bool gathers_again_;
  Mesh mesh_;
  PassLog& log_;
  Exchanger exchanger_;
  Graph dst_;
  std::vector<std::vector<Held>> to_;  // by node: its results
  std::map<NodeId, Sharding> given_;   // for each input
  std::map<NodeId, NodeId> inputs_;    // in the new graph
  std::vector<char> depends_on_data_, reads_inputs_, follows_loss_;
  bool is_behind_loss_ = false;  // the node that is made
  std::vector<std::optional<Sharding>> hints_;
  std::vector<Purpose> purposes_;
  Purpose current_;
};

std::vector<TensorType> results_of(const Node& n);

}  // namespace lc::distributed
