// expect: set: 4 elements for a tensor of [3, 1]
#include <array>

#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  lc::Session cx;
  cx.tensor<3, 1>().set(std::array<float, 4>{});
}
