// expect: a tensor of [?, 3] is not a [batch, 3]; if it is known to be, say so with as<...>()
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  Tensor<float, "batch", 3> t = input<float, dyn, 3>(g, "a", {5});
  (void)t;
}
