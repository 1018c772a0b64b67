// expect: matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  matmul(input<float, 32, 784>(g, "a"), input<float, 512, 10>(g, "b"));
}
