// expect: matmul: [32, in] x [out, 10]: inner dimensions differ: in vs out
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  matmul(input<float, 32, "in">(g, "a"), input<float, "out", 10>(g, "b"));
}
