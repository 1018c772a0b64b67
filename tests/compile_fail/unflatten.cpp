// expect: unflatten: [4, 2] does not make 6 elements
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  unflatten<0, 4, 2>(input<float, 6>(g, "a"));
}
