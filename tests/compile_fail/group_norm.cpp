// expect: group_norm: 3 groups do not divide 8 channels
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  group_norm<3>(input<float, 2, 8, 4>(g, "x"));
}
