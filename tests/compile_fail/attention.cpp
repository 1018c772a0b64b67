// expect: scaled_dot_product_attention: queries [2, 5, 16], keys [2, 7, 32] and values [2, 7, 16] do not fit
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  scaled_dot_product_attention(input<float, 2, 5, 16>(g, "q"), input<float, 2, 7, 32>(g, "k"),
                               input<float, 2, 7, 16>(g, "v"));
}
