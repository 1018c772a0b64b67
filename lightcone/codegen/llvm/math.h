// The functions of the C prelude as LLVM IR: the same steps on the same numbers.
#pragma once

#include "lightcone/codegen/llvm/text.h"
#include "lightcone/core/dtype.h"
#include "lightcone/core/op.h"

namespace lc::codegen::llvm {

Type register_type(DType t);  // f32 for the narrow floats, i1 for bool
Type stored_type(DType t);

Value constant(Text& text, double v, DType t);
Value apply(Op op, DType result, const Value& a, const Value& b, const Value& c);
Value exact_mod(const Value& a, double by);                     // the remainder by a power of two (exact_divisor())
Value mul_add(const Value& a, const Value& b, const Value& c);  // rounded once if the processor can
Value convert(const Value& v, DType from, DType to);
Value bitcast(const Value& v, DType from, DType to);  // reinterprets the bits
Value rounded(const Value& v, DType t);               // rounds a register of a narrow float to its type
Value widened(const Value& v, DType t);               // memory representation to register
Value narrowed(const Value& v, DType t);              // register to memory representation

// Maps floats to integers in the same order: -0 below +0, every NaN above infinity. unkey() is the inverse.
Value key(const Value& v);
Value unkey(const Value& k);

}  // namespace lc::codegen::llvm
