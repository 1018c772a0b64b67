// expect: recurrent layer: the last axis of [5, 2, 4] must be 3
#include "lightcone/nn/layers.h"
using namespace lc;

void wrong(const nn::GRU<3, 4>& gru, const typed::Tensor<float, 5, 2, 4>& x) { gru(x); }
