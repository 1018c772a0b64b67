// expect: addmm: an input [2, 2, 4] does not stretch to [2, 4]
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  addmm(input<float, 2, 2, 4>(g, "c"), input<float, 2, 3>(g, "a"), input<float, 3, 4>(g, "b"));
}
