// expect: a weight
#include "lightcone/nn/conv.h"
using namespace lc;

void wrong(const nn::Conv2d<3, 8, 3>& layer, const typed::Tensor<float, 8, 4, 9, 9>& x) { layer(x); }
