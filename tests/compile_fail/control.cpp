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

// docs/typed-shapes.md
Tensor<float, "batch", 10> classify(Tensor<float, "batch", 784> x, Tensor<float, 10, 784> w, Tensor<float, 10> b) {
  return softmax<-1>(linear(x, w, b));
}
void in_a_function(Tensor<float, "batch", 10> x) {
  using namespace lc;
  using lc::typed::Tensor;
  Tensor<float, dyn, 10> y = x;
  static_cast<void>(Tensor<float, "batch", dyn>(x));
  static_cast<void>(reshape<"batch", 5, dyn>(x).as<"batch", 5, 2>());
  static_cast<void>(y.as<"batch", 10>());
}
