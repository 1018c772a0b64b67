// expect: chunk: how many pieces an axis of batch has is not known now
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  static_cast<void>(chunk<2>(input<float, "batch">(g, "a")));
}
