// expect: conv_transpose: [8, 3, 5, 5] is not [batch, 4, 2 spatial axes]
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::ConvTranspose2d<4, 2, 3>& up, const typed::Tensor<float, 8, 3, 5, 5>& x) { up(x); }
