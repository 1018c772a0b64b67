// expect: reshape: [2, 3] has 6 elements, [4, 2] has 8
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  reshape<4, 2>(input<float, 2, 3>(g, "a"));
}
