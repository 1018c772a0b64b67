// expect: where: the condition is a tensor of bool
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  where(input<float, 2>(g, "c"), input<float, 2>(g, "a"), input<float, 2>(g, "b"));
}
