// All layers: names, parameters, defaults and first values are those of torch.nn.
//
// An extent is a template argument where it is known (Linear<784, 10>), and then the C++ compiler checks it, or an
// argument of the constructor (Linear<>(n, 10)). Layers take typed tensors and give typed ones, or untyped ones for
// untyped ones.
#pragma once

#include "lightcone/nn/activation.h"
#include "lightcone/nn/attention.h"
#include "lightcone/nn/containers.h"
#include "lightcone/nn/conv.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"
#include "lightcone/nn/pool.h"
#include "lightcone/nn/recurrent.h"
#include "lightcone/nn/reshape.h"
#include "lightcone/nn/transformer.h"
