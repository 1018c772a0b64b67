// expect: reshape: [batch, 6] has 6*batch elements, [seq, 6] has 6*seq
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  reshape<"seq", 6>(input<float, "batch", 6>(g, "a"));
}
