// expect: matmul: element types differ: convert one with to<...>()
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  matmul(input<float, 2, 3>(g, "a"), input<double, 3, 2>(g, "b"));
}
