// expect: squeeze: axis 1 of [2, 3] is not 1
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  squeeze<1>(input<float, 2, 3>(g, "a"));
}
