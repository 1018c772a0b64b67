// expect: diagonal_scatter: a source [3], not [2]
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  diagonal_scatter<-1>(input<float, 3, 3>(g, "a"), input<float, 3>(g, "s"));
}
