// expect: conv: a weight [8, 4, 3, 3] takes 4 channels, and [1, 3, 9, 9] has 3
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  conv2d(input<float, 1, 3, 9, 9>(g, "x"), input<float, 8, 4, 3, 3>(g, "w"));
}
