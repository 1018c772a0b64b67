// expect: conv_transpose: a weight [3, 8, 2, 2] takes 3 channels in, and [1, 4, 6, 6] has 4
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  conv_transpose2d<2>(input<float, 1, 4, 6, 6>(g, "x"), input<float, 3, 8, 2, 2>(g, "w"));
}
