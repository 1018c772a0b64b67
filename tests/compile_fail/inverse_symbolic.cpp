// expect: inv: needs extents that are known when the graph is built, not [n, n]: n is a symbol, and the blocks are
// counted
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  inv(input<float, "n", "n">(g, "a"));
}
