// expect: operator+: [batch, 3] and [seq, 3] differ at axis 0: batch vs seq
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  input<float, "batch", 3>(g, "a") + input<float, "seq", 3>(g, "b");
}
