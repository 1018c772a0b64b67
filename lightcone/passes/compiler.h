// Compilers as values. A pass turns a graph into a new graph; a Compiler is a list of passes joined with `|`. The
// driver names, times, counts, skips and observes passes, so that a pass does none of it.
//
//   Compiler mine = generic() | Compiler({"mine", [](const Graph& g, PassLog&) { ... }}) | cpu();
#pragma once

#include "lightcone/macros_off.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// The log of one pass.
struct PassLog {
  std::string pass;
  double seconds = 0;
  std::size_t nodes_before = 0, nodes_after = 0;  // live nodes
  std::map<std::string, int> fired;               // number of matches by rule or kernel
  std::vector<std::string> notes = {};            // unrequested messages for the user, as sentences
};

struct Pass {
  std::string name;
  std::function<Graph(const Graph&, PassLog&)> run;
  std::vector<Pass> parts = {};  // the same pass split into its rules, to find a faulty one
  bool required = false;         // later passes depend on it: skipping it throws Error
  // Returns false for a graph that the pass would copy unchanged; the driver then skips the pass to save time.
  std::function<bool(const Graph&)> applies = {};
  bool extends = false;  // appends outputs and states to the existing ones
  bool divides = false;  // keeps a part of the states, as one of several ranks does
  // True if the pass changes the computed function on purpose. verify() compares later passes with its result.
  bool redefines = false;
};

class Compiler {
 public:
  Compiler() = default;
  explicit Compiler(Pass p) { passes_.push_back(std::move(p)); }
  std::span<const Pass> passes() const { return passes_; }
  friend Compiler operator|(Compiler a, const Compiler& b);

 private:
  std::vector<Pass> passes_;
};

// Runs the compiler until the graph stops changing, at most `limit` times.
Compiler repeat(const Compiler& c, int limit = 8);

struct CompileOptions {
  // Makes each run check the index arguments of gather(), embedding(), one_hot(), scatter() and similar functions, and
  // throw Error if one is out of range. Otherwise such an index reads 0 and writes nothing.
  bool checks = false;
  std::vector<std::string> skip = {};  // passes to leave out, by name
  // Called after each pass with the graph before and after it.
  std::function<void(const Pass&, const Graph& before, const Graph& after)> observe = {};
};

struct Compiled {
  Graph graph;
  std::vector<PassLog> log;
};
// Runs the passes of `c` on a copy of `g`. Throws Error if a pass changes the outputs or the number of states, and if
// `options.skip` names an unknown or a required pass.
Compiled transform(const Graph& g, const Compiler& c, const CompileOptions& options = {});

std::string report(std::span<const PassLog> log);  // a human-readable table
// Returns how often a rule or a kernel matched, summed over all passes.
int fired(std::span<const PassLog> log, const std::string& what);

// Returns true if `is` holds for a node on which a result depends.
bool any_node(const Graph& g, const std::function<bool(const Node&)>& is);

// Copies the live part of `src` into a new graph. `emit` gets each node with its edges already in the new graph and
// returns the edge that replaces it. Most passes need nothing else. `result` gets each edge that becomes an output or
// the next value of a state, and returns the edge to use.
enum class ResultKind : std::uint8_t { Output, State };
Graph copy_graph(const Graph& src, const std::function<Edge(Graph& dst, NodeId id, Node n)>& emit,
                 const std::function<Edge(Graph& dst, Edge e, ResultKind kind)>& result = {});
// Adds the results and assignments of `src` to `dst`, where to[id] is the node of `dst` that replaces node `id`.
void copy_results(const Graph& src, std::span<const NodeId> to, Graph& dst);

}  // namespace lc
#include "lightcone/macros_on.h"
