// expect: cholesky: of i32 there are no fractions; convert to a floating type
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  cholesky(input<std::int32_t, 3, 3>(g, "a"));
}
