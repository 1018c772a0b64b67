// expect: InstanceNorm: say whether the model trains: norm(x, mode)
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::InstanceNorm2d<4>& norm, const typed::Tensor<float, 8, 4, 5, 5>& x) { norm(x); }
