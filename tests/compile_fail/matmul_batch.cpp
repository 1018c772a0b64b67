// expect: matmul: [2, 4, 5] x [3, 5, 6]: batch dimensions differ: 2 vs 3
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  matmul(input<float, 2, 4, 5>(g, "a"), input<float, 3, 5, 6>(g, "b"));
}
