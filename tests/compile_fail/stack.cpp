// expect: concat: [1, 2] and [1, 3] differ at axis 1: 2 vs 3
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  stack<0>(input<float, 2>(g, "a"), input<float, 3>(g, "b"));
}
