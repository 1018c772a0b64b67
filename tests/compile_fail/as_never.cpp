// expect: as: a tensor of [2, 3] is not a [2, 4]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  input<float, 2, 3>(g, "a").as<2, 4>();
}
