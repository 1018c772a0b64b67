// expect: matmul: [3, 1] x [4, 4]: inner dimensions differ: 1 vs 4
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  input<float, 3, 1>(g, "a").matmul(input<float, 4, 4>(g, "b"));
}
