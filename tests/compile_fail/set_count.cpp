// expect: set: 2 elements for a tensor of [3]
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  lc::Session cx;
  cx.tensor<3>().set({1.f, 2.f});
}
