// expect: broadcast_to: [2, 3] does not stretch to [4, 2, 5]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  broadcast_to<4, 2, 5>(input<float, 2, 3>(g, "a"));
}
