#include "lightcone/ops/internal.h"

#include <algorithm>

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor matmul(Operand a, Operand b) {
  LC_SCOPE("matmul");
  const DType type = promote(a->dtype(), b->dtype());
  if (is_narrow(type)) return prim::cast(matmul(prim::cast(a, DType::F32), prim::cast(b, DType::F32)), type);
  Tensor x = prim::cast(a, type), y = prim::cast(b, type);
  if (x.rank() == 0 || y.rank() == 0)
    throw Error("matmul", str(x.shape()) + " x " + str(y.shape()) + ": both need at least one axis");
  const bool row = x.rank() == 1, column = y.rank() == 1;
  if (row) x = x.unsqueeze(0);
  if (column) y = y.unsqueeze(1);
  if (!(x.extent(-1) == y.extent(-2)))
    throw Error("matmul", str_cat(str(a->shape()), " x ", str(b->shape()),
                                  ": inner dimensions differ: ", versus(x.extent(-1), y.extent(-2))));
  const Dim m = x.extent(-2), k = x.extent(-1), n = y.extent(-1);
  for (int i = std::min(x.rank(), y.rank()); i > 2; --i)
    if (const Dim p = x.extent(-i), q = y.extent(-i); !(p == q) && !(p == Dim(1)) && !(q == Dim(1)))
      throw Error("matmul",
                  str_cat(str(a->shape()), " x ", str(b->shape()), ": batch dimensions differ: ", versus(p, q)));
  Shape xb = x.shape(), yb = y.shape();
  xb.resize(xb.size() - 2);
  yb.resize(yb.size() - 2);
  Shape batch = broadcast(xb, yb, "matmul"), full = batch;
  full.insert(full.end(), {m, n, k});
  // multiplies [..., m, 1, k] by [..., 1, n, k] and sums over k
  const Tensor left = expand_to(x.unsqueeze(x.rank() - 1), full);
  const Tensor right = expand_to(y.transpose(-1, -2).unsqueeze(y.rank() - 2), full);
  Tensor r = prim::sum_reduce(prim::mul(left, right), static_cast<int>(full.size()) - 1);
  if (column) r = r.squeeze(-1);
  if (row) r = r.squeeze(column ? -1 : -2);
  return r;
}

Tensor linear(Operand x, Operand weight) {
  const OpScope scope("linear", x.at);
  if (weight->rank() != 2) throw Error("linear", "the weight has rank 2, not " + str(weight->shape()));
  if (x->rank() == 0 || !(x->extent(-1) == weight->extent(1)))
    throw Error("linear", str_cat(str(x->shape()), " with a weight ", str(weight->shape()), ": the last axis must be ",
                                  weight->extent(1)));
  return matmul(x, weight->permute({1, 0}));
}
Tensor linear(Operand x, Operand weight, Operand bias) {
  const OpScope scope("linear", x.at);
  if (x->dtype() == bias->dtype()) LC_RETURN_IF_EITHER_HALF(x, weight, linear(x, weight, bias));
  const Tensor y = linear(x, weight);
  if (bias->rank() != 1 || !(bias->extent(0) == weight->extent(0)))
    throw Error("linear", str_cat("a bias ", str(bias->shape()), " does not fit a weight ", str(weight->shape())));
  return y + bias.tensor;
}

Tensor outer(Operand a, Operand b) {
  LC_SCOPE("outer");
  if (a->rank() != 1 || b->rank() != 1)
    throw Error("outer", str_cat(str(a->shape()), " and ", str(b->shape()), ": both have rank 1"));
  return a->unsqueeze(1) * b->unsqueeze(0);
}
Tensor trace(Operand a) {
  LC_SCOPE("trace");
  if (a->rank() != 2) throw Error("trace", "needs a matrix, not " + str(a->shape()));
  return sum(diagonal(a));
}

}  // namespace lc
