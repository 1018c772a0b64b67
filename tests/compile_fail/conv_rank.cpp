// expect: conv: needs [batch, channels, 2 spatial axes], not [3, 9, 9]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  conv2d(input<float, 3, 9, 9>(g, "x"), input<float, 8, 3, 3, 3>(g, "w"));
}
