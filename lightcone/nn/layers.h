// Includes all layers. Names, parameters, defaults and initial values are those of torch.nn.
//
// An extent is a template argument if it is known at compile time (Linear<784, 10>), where the C++ compiler checks it,
// or an argument of the constructor (Linear<>(n, 10)). Layers map typed tensors to typed tensors, and untyped tensors
// to untyped tensors.
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
