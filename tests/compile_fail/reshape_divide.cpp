// expect: reshape: [2, 7] has 14 elements, [4, 3] has 12
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  reshape<4, dyn>(input<float, 2, 7>(g, "a"));
}
