// Compilers as values. A pass turns a graph into a new graph; a Compiler is a list of passes,
// joined with `|`. The driver, not the pass, names, times, counts, skips and observes.
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

// What one pass did.
struct PassLog {
  std::string pass;
  double seconds = 0;
  std::size_t nodes_before = 0, nodes_after = 0;  // live ones
  std::map<std::string, int> fired;               // rule or kernel -> how often
  std::vector<std::string> notes = {};            // what the user should know and did not ask for, as sentences
};

struct Pass {
  std::string name;
  std::function<Graph(const Graph&, PassLog&)> run;
  std::vector<Pass> parts = {};  // the same pass cut into its rules, for finding a guilty one
  bool required = false;         // what comes behind it needs it: leaving it out is an Error
  // False for a graph that the pass would copy as it is: it is not run then, which costs less.
  std::function<bool(const Graph&)> applies = {};
  bool extends = false;    // it adds outputs and states behind those there are
  bool redefines = false;  // what it computes is something else, on purpose: verify() holds what follows against that
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

// The compiler run until the graph stops changing, at most `limit` times.
Compiler repeat(const Compiler& c, int limit = 8);

struct CompileOptions {
  // Each run of the program looks at the indices that gather(), embedding(), one_hot(), scatter() and their like were
  // given, and throws an Error for one that is out of range. Without it such an index reads 0 and writes nothing.
  bool checks = false;
  std::vector<std::string> skip = {};  // passes to leave out, by name
  // Called after each pass with the graph before and after it.
  std::function<void(const Pass&, const Graph& before, const Graph& after)> observe = {};
};

struct Compiled {
  Graph graph;
  std::vector<PassLog> log;
};
// The user's graph is not touched.
Compiled transform(const Graph& g, const Compiler& c, const CompileOptions& options = {});

std::string report(std::span<const PassLog> log);  // a table for people
// How often a rule or a kernel fired, in all passes.
int fired(std::span<const PassLog> log, const std::string& what);

bool any_node(const Graph& g, const std::function<bool(const Node&)>& is);

// Copies the live part of `src` into a new graph, letting `emit` decide what each node becomes:
// it gets the node with its edges already in the new graph. This is all most passes need.
Graph copy_graph(const Graph& src, const std::function<Edge(Graph& dst, NodeId id, Node n)>& emit);
// The results and the assignments of `src` in `dst`, where node `id` of the one has become to[id] of the other.
void copy_results(const Graph& src, std::span<const NodeId> to, Graph& dst);

}  // namespace lc
#include "lightcone/macros_on.h"
