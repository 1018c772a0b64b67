// expect: set: elements of another type than the tensor's
#include "lightcone/lightcone.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  lc::Session cx;
  cx.tensor<3>().set(std::vector<double>(3));
}
