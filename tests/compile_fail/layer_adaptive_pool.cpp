// expect: adaptive pool: needs [batch, channels, 2 spatial axes], not [8, 6, 4]
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::AdaptiveAvgPool2d<1>& pool, const typed::Tensor<float, 8, 6, 4>& x) { pool(x); }
