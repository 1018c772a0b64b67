// expect: is both 3 and 4
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  einsum<"ij,jk->ik">(input<float, 2, 3>(g, "a"), input<float, 4, 5>(g, "b"));
}
