// expect: conv: filter [64, 3, 7, 7] is larger than the padded image [batch, 3, 5, 5]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  conv2d(input<float, "batch", 3, 5, 5>(g, "x"), input<float, 64, 3, 7, 7>(g, "w"));
}
