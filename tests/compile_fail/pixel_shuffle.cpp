// expect: pixel_shuffle: 4 does not divide the channels of [1, 6, 8, 8]
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  pixel_shuffle<2>(input<float, 1, 6, 8, 8>(g, "x"));
}
