// expect: index_select: the index has rank 1, not [2, 2]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  index_select<0>(input<float, 5, 3>(g, "a"), input<std::int64_t, 2, 2>(g, "i"));
}
