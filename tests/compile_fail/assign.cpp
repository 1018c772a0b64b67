// expect: a tensor of [2, 3] is not a [2, 4]; if it is known to be, say so with as<...>()
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  Tensor<float, 2, 4> t = input<float, 2, 3>(g, "a");
  (void)t;
}
