// expect: linear: [batch, 4] with a weight [3, 8]: the last axis must be 8
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  linear(input<float, "batch", 4>(g, "x"), input<float, 3, 8>(g, "w"));
}
