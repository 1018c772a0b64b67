// expect: embedding: ids are whole numbers
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  embedding(input<float, 10, 4>(g, "w"), input<float, 3>(g, "i"));
}
