// expect: glu: axis 1 of [2, 3] has no halves
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::GLU<1>& glu, const typed::Tensor<float, 2, 3>& x) { glu(x); }
