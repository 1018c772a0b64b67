// expect: kthvalue: k is 4, axis 1 of [2, 3] has 3 elements
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  kthvalue<4>(input<float, 2, 3>(g, "a"));
}
