// expect: concat: [2, 4] and [2, 5, 1] have different ranks
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  concat<1>(input<float, 2, 3>(g, "a"), input<float, 2, 1>(g, "b"), input<float, 2, 5, 1>(g, "c"));
}
