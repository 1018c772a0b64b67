// expect: operator-: bool has no subtraction; logical_xor and logical_not say what is meant
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  input<bool, 2>(g, "a") - input<bool, 2>(g, "b");
}
