// expect: concat: [2, 3] and [2, 4] differ at axis 1: 3 vs 4
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  concat<0>(input<float, 2, 3>(g, "a"), input<float, 2, 4>(g, "b"));
}
