// expect: matmul: [] x [3, 4]: both need at least one axis
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  matmul(input<float>(g, "a"), input<float, 3, 4>(g, "b"));
}
