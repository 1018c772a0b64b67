// Helpers shared by the files of this folder.
#pragma once

#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/ops/internal.h"

namespace lc::places {

Tensor from_start(const Operand& index, const Dim& n, const char* op);  // i64; adds n to negative indices
Tensor place(const Tensor& like, int axis);                             // i64: each element's index along an axis
Tensor flat(const Tensor& t);                                           // reshapes to rank 1
void same_type(const Operand& a, const Operand& src, const char* op);

}  // namespace lc::places
