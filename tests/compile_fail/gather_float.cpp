// expect: gather: indices are integers
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  gather<0>(input<float, 2, 3>(g, "a"), input<float, 2, 3>(g, "i"));
}
