// expect: linear: [8, 4] with a weight [2, 3]: the last axis must be 3
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::Linear<3, 2>& layer, const typed::Tensor<float, 8, 4>& x) { layer(x); }
