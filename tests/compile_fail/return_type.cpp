// expect: a tensor of [batch, 10] is not a [batch, 3]; if it is known to be, say so with as<...>()
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  [](Tensor<float, "batch", 4> x, Tensor<float, 10, 4> w) -> Tensor<float, "batch", 3> { return linear(x, w); }
  (Tensor<float, "batch", 4>(), Tensor<float, 10, 4>());
}
