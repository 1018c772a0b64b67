// Helper functions for writing definitions of composites.
#pragma once

#include "lightcone/core/composite.h"
#include "lightcone/core/tensor.h"

namespace lc::definitions {

using namespace prim;

inline Tensor like(const Tensor& t, double v) { return full_like(t, v); }
inline Tensor not_(const Tensor& b) { return less_than(b, like(b, 1)); }
inline Tensor and_(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor or_(const Tensor& a, const Tensor& b) { return add(a, b); }  // bool + bool saturates
inline Tensor negate(const Tensor& a) { return mul(a, like(a, -1)); }
inline Tensor is_nan(const Tensor& a) {  // every number is < 0 or > -1
  return not_(or_(less_than(a, like(a, 0)), less_than(like(a, -1), a)));
}
inline Tensor index_of(const Tensor& t, int axis, DType dtype) {  // each element's index along an axis
  return t.graph().index(t.shape(), Dim::index(axis, t.extent(axis)), dtype);
}

}  // namespace lc::definitions
