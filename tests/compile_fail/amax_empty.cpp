// expect: amax: axis 1 of [2, 0] has no elements
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  amax<1>(input<float, 2, 0>(g, "a"));
}
