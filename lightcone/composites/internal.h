// Helper functions for the files of this folder: checks of operand types, and rules for the reference.
#pragma once

#include "lightcone/composites/composites.h"
#include "lightcone/composites/definitions.h"
#include "lightcone/reference/internal.h"
#include "lightcone/reference/rule.h"

namespace lc::definitions {

using OperandTypes = std::span<const TensorType>;

inline int axis_of(const Attributes& a) { return static_cast<int>(a.integer("axis")); }

[[noreturn]] void refuse(const std::string& problem);  // throws an Error, to which call() adds the composite's name
std::string shapes(OperandTypes in);
void axis_exists(int axis, const Shape& s);
void along_axis(OperandTypes in, int axis);  // throws unless operands 0 and 1 agree on all other axes
void integer_index(const TensorType& t);
void same_types(const TensorType& base, const TensorType& source);

// hit[.., j, k, ..] = (index[.., j, ..] == k), with j at `axis`, k at `axis` + 1, and k in [0, n).
Tensor hits(const Tensor& index, int axis, const Dim& n);

// A gradient rule that gives no operand a gradient.
std::vector<Tensor> no_vjp(const VjpCall& c);

// ---- the reference -----------------------------------------------------------------------------

// Returns the deviations of element k in the samples; zero if v has no samples.
Deviations shift_at(const Value& v, std::size_t k);
// Copies element `from` of a to element `to` of b for any dtype.
void copy_element(const Value& a, std::size_t from, Value& b, std::size_t to);
bool sampled(lc::Operands in);  // true if any operand has samples
// Makes a rule of a function with one result.
std::shared_ptr<const ReferenceRule> reference(Value (*f)(const Evaluation& e));

// Applies a composite with one result along an axis of its first operand. Throws Error if the axis is out of range.
Tensor along(const CompositeRef& c, std::vector<Tensor> in, const Operand& first, int axis,
             std::vector<Attributes::Entry> more = {});

}  // namespace lc::definitions
