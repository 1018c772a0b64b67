// expect: backward: this loss was not traced; write backward(trace(model, f, x...))
#include "lightcone/nn/layers.h"
#include "lightcone/train/trace.h"
using namespace lc;

void wrong(const Tensor& loss) { backward(loss); }
