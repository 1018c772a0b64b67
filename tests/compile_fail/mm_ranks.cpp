// expect: mm: [2, 3, 4] x [4, 5]: the ranks are 2 and 2
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  mm(input<float, 2, 3, 4>(g, "a"), input<float, 4, 5>(g, "b"));
}
