// expect: scaled_dot_product_attention: [2, 5, 7] and [5, 6] differ at axis 2: 7 vs 6
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  scaled_dot_product_attention(input<float, 2, 5, 16>(g, "q"), input<float, 2, 7, 16>(g, "k"),
                               input<float, 2, 7, 16>(g, "v"), input<bool, 5, 6>(g, "m"));
}
