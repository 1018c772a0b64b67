// expect: maximum: [4, 2] and [4, 3] differ at axis 1: 2 vs 3
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  maximum(input<float, 4, 2>(g, "a"), input<float, 4, 3>(g, "b"));
}
