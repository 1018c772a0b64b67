// expect: cholesky: needs a square matrix, not [2, 3]
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  cholesky(input<float, 2, 3>(g, "a"));
}
