// expect: take_along_dim: [2, 3] and indices [3] have different ranks
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  take_along_dim<1>(input<float, 2, 3>(g, "a"), input<std::int64_t, 3>(g, "i"));
}
