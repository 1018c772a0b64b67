// expect: a tensor of [3, -1]: no extent is negative
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  Tensor<float, 3, -1> t;
  (void)t;
}
