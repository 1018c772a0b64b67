// expect: operator+: [8, 3] and [4] differ at axis 1: 3 vs 4
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  linear(input<float, 8, 2>(g, "x"), input<float, 3, 2>(g, "w"), input<float, 4>(g, "b"));
}
