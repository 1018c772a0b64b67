// expect: sum: an axis is named twice
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  sum<1, -1>(input<float, 2, 3>(g, "a"));
}
