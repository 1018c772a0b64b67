// Everything a small program needs: the typed face, sessions, compilers, the CPU.
// Files, tokenizers and models have headers of their own (lightcone/io, lightcone/models).
#pragma once

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/core/graph.h"
#include "lightcone/core/tensor.h"
#include "lightcone/lowering/half_precision.h"
#include "lightcone/lowering/int8.h"
#include "lightcone/lowering/mixed_precision.h"
#include "lightcone/nn/session.h"
#include "lightcone/ops/conv.h"
#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/ops/linalg/linalg.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/special/special.h"
#include "lightcone/ops/typed/typed.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/runtime/remat.h"
#include "lightcone/verify/verify.h"
