// expect: max_pool: a window of 7 is larger than the padded image [1, 3, 5, 5]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  max_pool2d<7>(input<float, 1, 3, 5, 5>(g, "x"));
}
