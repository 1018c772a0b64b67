// expect: nothing
#include "lightcone/lightcone.h"
using namespace lc::typed;

void right(lc::Graph& g) {
  auto a = input<float, 32, 784>(g, "a");
  Tensor<float, 32, 10> y = matmul(a, input<float, 784, 10>(g, "b"));
  Tensor<float, dyn, 10> less = y;
  Tensor<float, 32, 10> again = less.as<32, 10>();
  static_cast<void>(again);
}
