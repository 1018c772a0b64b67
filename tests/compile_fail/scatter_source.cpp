// expect: scatter: a source [1, 3] is smaller than its index [2, 3]
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  scatter<0>(input<float, 4, 3>(g, "a"), input<std::int64_t, 2, 3>(g, "i"), input<float, 1, 3>(g, "s"));
}
