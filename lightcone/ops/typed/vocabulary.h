// Includes all typed operations. lightcone.h includes the common ones (typed.h): arithmetic, reductions, products,
// views, layers, losses, random numbers. Typed linear algebra, indexing, statistics and images are only here, because
// they would increase the compile time of every program that includes lightcone.h by a sixth.
#pragma once

#include "lightcone/ops/typed/functional.h"
#include "lightcone/ops/typed/indexing.h"
#include "lightcone/ops/typed/linalg.h"
#include "lightcone/ops/typed/special.h"
#include "lightcone/ops/typed/typed.h"
