// expect: Dropout: say whether the model trains: dropout(x, mode)
#include "lightcone/nn/layers.h"
#include "lightcone/train/trace.h"
using namespace lc;

void wrong(const nn::Dropout& drop, const typed::Tensor<float, 8, 3>& x) { drop(x); }
