// expect: takes 3 channels, and [1, 8, 8, 3] has 8; channels come second, [N, C, H, W]: permute the axes to 0, 3, 1, 2
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  conv2d<1>(input<float, 1, 8, 8, 3>(g, "x"), input<float, 16, 3, 3, 3>(g, "w"));
}
