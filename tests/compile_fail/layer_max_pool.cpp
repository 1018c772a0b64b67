// expect: max_pool: a window of 5 is larger than the padded image [8, 6, 4, 4]
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::MaxPool2d<5>& pool, const typed::Tensor<float, 8, 6, 4, 4>& x) { pool(x); }
