// expect: trace: the loss is [8, 1], not a scalar; reduce it with sum or mean
#include "lightcone/nn/layers.h"
#include "lightcone/train/trace.h"
using namespace lc;

void wrong(nn::Model<nn::Linear<3, 1>>& net, const typed::Tensor<float, 8, 3>& x) {
  static_cast<void>(trace(
      net, [](auto& net, auto x) { return net(x); }, x));
}
