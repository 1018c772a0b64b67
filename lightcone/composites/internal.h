// What the files of this folder share: checks of operands, and rules of the reference.
#pragma once

#include "lightcone/composites/composites.h"
#include "lightcone/composites/definitions.h"
#include "lightcone/reference/internal.h"
#include "lightcone/reference/rule.h"

namespace lc::definitions {

using OperandTypes = std::span<const TensorType>;

inline int axis_of(const Attributes& a) { return static_cast<int>(a.integer("axis")); }

[[noreturn]] void refuse(const std::string& problem);  // throws an Error that the composite's call() completes
std::string shapes(OperandTypes in);
void axis_exists(int axis, const Shape& s);
void along_axis(OperandTypes in, int axis);  // operands 0 and 1 may differ along the axis only
void integer_index(const TensorType& t);
void same_types(const TensorType& base, const TensorType& source);

// hit[.., j, k, ..] = (index[.., j, ..] == k), with the axes j and k next to each other at `axis`.
Tensor hits(const Tensor& index, int axis, const Dim& n);

std::vector<Tensor> no_vjp(const VjpCall& c);

// ---- the reference -----------------------------------------------------------------------------

Deviations shift_at(const Value& v, std::size_t k);
// Copies element `from` of a to element `to` of b, whatever the dtype.
void copy_element(const Value& a, std::size_t from, Value& b, std::size_t to);
bool sampled(lc::Operands in);
std::shared_ptr<const ReferenceRule> reference(Value (*f)(const Evaluation& e));

// The composite applied along an axis of its first operand.
Tensor along(const CompositeRef& c, std::vector<Tensor> in, const Operand& first, int axis,
             std::vector<Attributes::Entry> more = {});

}  // namespace lc::definitions
