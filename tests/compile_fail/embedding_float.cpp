// expect: embedding: ids come first, and are whole numbers
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  embedding(input<float, 3>(g, "i"), input<float, 10, 4>(g, "w"));
}
