// expect: lt: [2] and [3] differ at axis 0: 2 vs 3
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  input<float, 2>(g, "a") < input<float, 3>(g, "b");
}
