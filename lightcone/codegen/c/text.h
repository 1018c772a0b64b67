// Numbers, types and operations of the kernel IR as C text.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

std::string_view register_type(DType t);
std::string_view suffix(DType t);  // suffix of the functions on registers of this type, such as "_f"
std::string number(double v, DType t);
std::string spell_mul_add(DType operand, const std::string& a, const std::string& b, const std::string& c);
// Returns the C expression of an operation: its spelling in the op table with the type's suffix.
std::string spell(Op op, DType operand, const std::string& a, const std::string& b, const std::string& c);
// Returns the remainder by a power of two (exact_divisor()).
std::string spell_exact_mod(DType operand, const std::string& a, const std::string& b);
// Returns the call that computes an operation for kLanes numbers, from one array to another.
std::string spell_vector(Op op, const std::string& to, const std::string& from);
std::string rounded(const std::string& v, DType t);
// Converts a register of type `from` to a register of type `to`.
std::string converted(const std::string& v, DType from, DType to);
// Reinterprets the bits of a register of type `from` as type `to`.
std::string bits_as(const std::string& v, DType from, DType to);
std::string loaded(const std::string& buffer, DType t, const std::string& offset);
std::string loaded_as(DType t, const std::string& v);  // memory representation to register
// Converts a register to its memory representation. The register holds a number of the type already.
std::string stored(const std::string& v, DType t);
std::string identity(const Reduction& r);

}  // namespace lc::codegen
