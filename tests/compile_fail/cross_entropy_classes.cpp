// expect: cross_entropy: input [8, 10] has classes of [8], not [4]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  cross_entropy(input<float, 8, 10>(g, "x"), input<std::int64_t, 4>(g, "t"));
}
