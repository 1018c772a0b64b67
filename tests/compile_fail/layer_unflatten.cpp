// expect: reshape: [6] has 6 elements, [4, 2] has 8
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::Unflatten<1, 4, 2>& part, const typed::Tensor<float, 8, 6>& x) { part(x); }
