// expect: permute: the axes are not an order of all axes of [2, 3, 4]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  permute<0, 0, 1>(input<float, 2, 3, 4>(g, "a"));
}
