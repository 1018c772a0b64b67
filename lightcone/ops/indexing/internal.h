// Shared by the files of this folder.
#pragma once

#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/ops/internal.h"

namespace lc::places {

Tensor from_start(const Operand& index, const Dim& n, const char* op);  // i64; negative ones counted from the end
Tensor place(const Tensor& like, int axis);                             // i64: where each element is along an axis
Tensor flat(const Tensor& t);                                           // one row
void same_type(const Operand& a, const Operand& src, const char* op);

}  // namespace lc::places
