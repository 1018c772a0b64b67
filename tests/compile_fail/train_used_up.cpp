// expect: backward: it uses the loss up; write backward(std::move(loss))
#include "lightcone/nn/layers.h"
#include "lightcone/train/trace.h"
using namespace lc;

void wrong(nn::Model<nn::Linear<3, 1>>& net, const Tensor& x) {
  auto loss = trace(
      net, [](auto& net, auto x) { return sum(net(x)); }, x);
  backward(loss);
}
