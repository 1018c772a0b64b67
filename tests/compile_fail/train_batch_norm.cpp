// expect: BatchNorm: say whether the model trains: norm(x, mode)
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::BatchNorm2d<3>& norm, const typed::Tensor<float, 8, 3, 4, 4>& x) { norm(x); }
