// expect: mse_loss: input [8] and target [8, 1] differ; nothing is broadcast
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  mse_loss(input<float, 8>(g, "x"), input<float, 8, 1>(g, "t"));
}
