// expect: solve: [3, 3] and [4, 2]: their rows differ: 3 vs 4
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  lc::linalg::solve(input<float, 3, 3>(g, "a"), input<float, 4, 2>(g, "b"));
}
