// expect: operator+: element types differ: convert one with to<...>()
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  input<float, 2>(g, "a") + input<double, 2>(g, "b");
}
