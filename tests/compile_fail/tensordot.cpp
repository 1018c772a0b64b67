// expect: tensordot: axis 1 of [2, 3] and axis 0 of [4, 5] differ: 3 vs 4
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  tensordot<1>(input<float, 2, 3>(g, "a"), input<float, 4, 5>(g, "b"));
}
