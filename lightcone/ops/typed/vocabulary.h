// The whole typed face. lightcone.h has its everyday part (typed.h): arithmetic, reductions, products, views, layers,
// losses, random numbers. Linear algebra, indexing, statistics and images are here, for those who want them checked by
// the C++ compiler: they would make every program that includes lightcone.h compile a sixth longer.
#pragma once

#include "lightcone/ops/typed/functional.h"
#include "lightcone/ops/typed/indexing.h"
#include "lightcone/ops/typed/linalg.h"
#include "lightcone/ops/typed/special.h"
#include "lightcone/ops/typed/typed.h"
