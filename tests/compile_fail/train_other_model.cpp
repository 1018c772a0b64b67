// expect: update: these are the gradients of another model
#include "lightcone/nn/layers.h"
#include "lightcone/train/trace.h"
using namespace lc;

void wrong(nn::Model<nn::Linear<3, 1>>& a, nn::Model<nn::Linear<3, 2>>& b, const Tensor& x) {
  update(a, optim::SGD{},
         backward(trace(
             b, [](auto& net, auto x) { return sum(net(x)); }, x)));
}
