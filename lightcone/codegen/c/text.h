// Numbers, types and operations of the kernel IR as C text.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

std::string_view register_type(DType t);
std::string_view suffix(DType t);  // of the functions on registers of this type, "_f"
std::string number(double v, DType t);
std::string spell_mul_add(DType operand, const std::string& a, const std::string& b, const std::string& c);
// The C expression of an operation: its spelling in the op table with the type's suffix.
std::string spell(Op op, DType operand, const std::string& a, const std::string& b, const std::string& c);
// The call that computes it for kLanes numbers, from one array into another.
std::string spell_vector(Op op, const std::string& to, const std::string& from);
std::string rounded(const std::string& v, DType t);
// A register of type `from` as a register of type `to`.
std::string converted(const std::string& v, DType from, DType to);
// The bits of a register of type `from` as one of type `to`.
std::string bits_as(const std::string& v, DType from, DType to);
std::string loaded(const std::string& buffer, DType t, const std::string& offset);
std::string loaded_as(DType t, const std::string& v);  // what memory holds as a register
// A register holds a number of its type already.
std::string stored(const std::string& v, DType t);
std::string identity(const Reduction& r);

}  // namespace lc::codegen
