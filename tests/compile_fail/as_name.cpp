// expect: as: a tensor of [batch, 3] is not a [seq, 3]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  input<float, "batch", 3>(g, "a").as<"seq", 3>();
}
