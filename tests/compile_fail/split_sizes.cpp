// expect: split: the sizes add up to 5, the axis has 6
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  static_cast<void>(split<Sizes{2, 3}>(input<float, 6>(g, "a")));
}
