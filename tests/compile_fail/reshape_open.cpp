// expect: reshape: [?, ?] leaves more than one extent open
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  reshape<dyn, dyn>(input<float, 2, 3>(g, "a"));
}
