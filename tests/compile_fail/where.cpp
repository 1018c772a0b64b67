// expect: where: [2, 3] and [2, 5] differ at axis 1: 3 vs 5
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  where(input<bool, 2, 3>(g, "c"), input<float, 2, 3>(g, "a"), input<float, 2, 5>(g, "b"));
}
