// A pass of one's own, verified against the f64 reference: a factor of both terms of a sum, x c + y c, becomes one
// factor of the sum, (x + y) c.
#include <iostream>

#include "lightcone/lightcone.h"

using namespace lc;

// Rules are data: two patterns. The driver names, times, counts and, in verify(), bisects them.
Compiler factor() {
  const Pat x = any(), y = any(), c = any();
  return rewrite("factor", {{"x c + y c", x * c + y * c, (x + y) * c, For::Floats, Policy::Reassociates}});
}

// A pass is a function from graph to graph: this one counts the nodes that are left.
Compiler count_nodes(std::size_t& n) {
  return Compiler({"count", [&n](const Graph& g, PassLog& log) {
                     n = 0;
                     for (bool live : g.live()) n += live;
                     log.fired["live nodes"] = static_cast<int>(n);
                     return g.clone();
                   }});
}

int main() {
  Graph g;
  const Tensor a = g.input("a", {8, 16}), b = g.input("b", {8, 16}), c = g.input("c", {8, 16});
  g.output("y", exp2(a * c + b * c));

  std::size_t nodes = 0;
  const Compiler mine = generic() | factor() | count_nodes(nodes) | cpu({.threads = 1});
  std::cout << report(compile(g, mine).log()) << nodes << " nodes before the CPU\n";

  const VerifyReport r = verify(g, mine, {.wild = false});
  std::cout << r.str();
  return r.ok() && nodes == 6 ? 0 : 1;
}
