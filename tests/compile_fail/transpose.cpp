// expect: transpose: axis 2 is not an axis of [2, 3]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  transpose<0, 2>(input<float, 2, 3>(g, "a"));
}
