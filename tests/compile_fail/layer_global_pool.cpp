// expect: global pool: needs [batch, channels, spatial axes], not [8, 6]
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::MaxPoolGlobal& pool, const typed::Tensor<float, 8, 6>& x) { pool(x); }
