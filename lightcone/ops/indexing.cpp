// Gathering, scattering and sorting.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor detail::in_range(const Tensor& index, const Dim& below) {
  if (is_float(index.dtype()) || index.node().op == Op::Index || index.node().op == Op::Constant) return index;
  return call(builtin::index_in_range(), {index}, {{"below", below}})[0];
}
Tensor gather(Operand a, int axis, Operand index) {
  LC_SCOPE("gather");
  if (is_number(a, axis) && index->rank() <= 1) return gather(row_of(a), 0, row_of(index)).reshape(index->shape());
  axis = wrap_axis(axis, a->rank(), a->shape(), "gather");
  Tensor data = a;  // other axes may be longer than those of the index
  for (int i = 0; i < a->rank() && index->rank() == a->rank(); ++i)
    if (i != axis && provably_below(a->extent(i), index->extent(i)))
      throw Error("gather", str_cat("an index ", str(index->shape()), " leaves ", str(a->shape()), " at axis ", i));
  for (int i = 0; i < a->rank() && index->rank() == a->rank(); ++i)
    if (i != axis && !(index->extent(i) == a->extent(i))) data = data.slice(i, 0, index->extent(i));
  return prim::gather(data, in_range(index, data.extent(axis)), axis);
}
Tensor index_select(Operand a, int axis, Operand index) {
  LC_SCOPE("index_select");
  if (is_number(a, axis) && (index->rank() == 0 || index->shape() == Shape{1}))
    return number_of(index_select(row_of(a), 0, row_of(index)));
  index.tensor = row_of(index);  // PyTorch accepts a scalar index as [1]
  axis = wrap_axis(axis, a->rank(), a->shape(), "index_select");
  if (index->rank() != 1) throw Error("index_select", "the index has rank 1, not " + str(index->shape()));
  Shape s(static_cast<std::size_t>(a->rank()), 1), wide = a->shape();
  s[axis] = wide[axis] = index->extent(0);
  return prim::gather(a, in_range(index, a->extent(axis)).reshape(s).expand(wide), axis);
}
namespace {
// Returns the rows for ids with zero gradient for the row padding_idx.
Tensor without_derivative_of(const Tensor& rows, const Tensor& ids, std::int64_t padding_idx) {
  static const CompositeRef c = std::make_shared<const Composite>(
      Composite{.name = "padding_idx",
                .arity = 2,
                .infer = [](const Attributes&, std::span<const TensorType> in) { return std::vector{in[0]}; },
                .define = [](const Attributes&, std::span<const Tensor> in) { return std::vector{in[0]}; },
                .vjp = [](const VjpCall& call) -> std::vector<Tensor> {
                  const Tensor& ids = call.in[1];
                  return {masked_fill(call.g(), eq(ids, call.attributes.integer("row")).unsqueeze(ids.rank()), 0), {}};
                }});
  return call(c, {rows, ids}, {{"row", padding_idx}})[0];
}
}  // namespace
Tensor embedding(Operand ids, Operand weight, std::optional<std::int64_t> padding_idx) {
  const OpScope scope("embedding", ids.at);
  if (is_float(ids->dtype()))
    throw Error("embedding",
                str_cat("ids come first, and are integers, not ", name(ids->dtype()), " ", str(ids->shape())));
  if (weight->rank() != 2) throw Error("embedding", "the weight has rank 2, not " + str(weight->shape()));
  const Dim n = product(ids->shape()), d = weight->extent(1);
  const Tensor index = in_range(ids, weight->extent(0)).reshape({n, 1}).expand({n, d});
  Shape s = ids->shape();
  s.push_back(d);
  const Tensor rows = prim::gather(weight, index, 0).reshape(s);
  return padding_idx ? without_derivative_of(rows, ids, *padding_idx) : rows;
}
Tensor one_hot(Operand ids, Dim classes) {
  const OpScope scope("one_hot", ids.at);
  if (is_float(ids->dtype())) throw Error("one_hot", str_cat("the classes are integers, not ", name(ids->dtype())));
  if (classes.bounds().hi < 1) throw Error("one_hot", str_cat(classes, " classes"));
  Shape s = ids->shape();
  s.push_back(classes);
  const Tensor i = ids->graph().index(s, Dim::index(ids->rank(), classes), ids->dtype());
  return prim::cast(prim::equal(in_range(ids, classes).unsqueeze(ids->rank()).expand(s), i), DType::I64);
}
namespace {
// PyTorch allows an index shorter than the base along other axes, and a source longer than the index.
Tensor scattered(const Operand& a, int axis, const Operand& index, const Operand& src, const char* op,
                 Tensor (*write)(Operand, Operand, Operand, int)) {
  const OpScope scope(op, a.at);
  if (is_number(a, axis) && index->rank() <= 1 && src->rank() <= 1)
    return number_of(
        scattered(Operand(row_of(a), a.at), 0, Operand(row_of(index), a.at), Operand(row_of(src), a.at), op, write));
  axis = wrap_axis(axis, a->rank(), a->shape(), op);
  if (index->rank() != a->rank() || src->rank() != a->rank())
    throw Error(op, str_cat(str(a->shape()), ", index ", str(index->shape()), " and source ", str(src->shape()),
                            " have different ranks"));
  if (src->dtype() != a->dtype())
    throw Error(op, str_cat("the source is ", name(src->dtype()), ", the tensor ", name(a->dtype()), "; convert one"));
  Tensor at = in_range(index, a->extent(axis)), from = src;
  for (int i = 0; i < a->rank(); ++i) {
    const Dim n = index->extent(i), room = a->extent(i) - n;
    if (provably_below(src->extent(i), n))
      throw Error(op, str_cat("a source ", str(src->shape()), " is smaller than its index ", str(index->shape())));
    if (!(src->extent(i) == n)) from = from.slice(i, 0, n);
    if (i == axis || room == Dim(0)) continue;
    if (room.bounds().lo < 0) throw Error(op, str_cat("an index ", str(index->shape()), " leaves ", str(a->shape())));
    const auto more = room.constant();
    if (!more) throw Error(op, str_cat("an index ", str(index->shape()), " does not fit ", str(a->shape())));
    at = pad(at, i, 0, static_cast<int>(*more), PadMode::Constant, -1);  // -1 writes nothing
    from = from.pad(i, 0, room);
  }
  return write(a, at, from, axis);
}
}  // namespace
Tensor scatter(Operand a, int axis, Operand index, Operand src) {
  return scattered(a, axis, index, src, "scatter", prim::scatter);
}
Tensor scatter_add(Operand a, int axis, Operand index, Operand src) {
  return scattered(a, axis, index, src, "scatter_add", prim::scatter_add);
}
Tensor scatter(Operand a, int axis, Operand index, Scalar value) {
  LC_SCOPE("scatter");
  return scatter(a, axis, index, full(a->graph(), index->shape(), value, a->dtype()));
}
namespace {
Tensor along(const Operand& a, int& axis, const Operand& index, const Operand& src, const char* op) {
  axis = wrap_axis(axis, a->rank(), a->shape(), op);
  if (index->rank() != 1) throw Error(op, "the index has rank 1, not " + str(index->shape()));
  if (src->rank() != a->rank() || !(src->extent(axis) == index->extent(0)))
    throw Error(op, str_cat("a source ", str(src->shape()), " does not fit ", index->extent(0), " places of axis ",
                            axis, " of ", str(a->shape())));
  Shape s(static_cast<std::size_t>(a->rank()), 1);
  s[axis] = index->extent(0);
  return index->reshape(s).expand(src->shape());
}
}  // namespace
// Treats a scalar with a scalar source as rows of one element; returns true in this case.
bool as_rows(Operand& a, int axis, Operand& index, Operand& src) {
  index.tensor = row_of(index);
  if (!is_number(a, axis) || src->rank() != 0) return false;
  a.tensor = row_of(a), src.tensor = row_of(src);
  return true;
}
Tensor index_add(Operand a, int axis, Operand index, Operand src) {
  LC_SCOPE("index_add");
  if (as_rows(a, axis, index, src)) return number_of(index_add(a, 0, index, src));
  const Tensor at = along(a, axis, index, src, "index_add");
  return scatter_add(a, axis, at, src);
}
Tensor index_copy(Operand a, int axis, Operand index, Operand src) {
  LC_SCOPE("index_copy");
  if (as_rows(a, axis, index, src)) return number_of(index_copy(a, 0, index, src));
  const Tensor at = along(a, axis, index, src, "index_copy");
  return scatter(a, axis, at, src);
}
Tensor argsort(Operand a, int axis, bool descending) {
  LC_SCOPE("argsort");
  LC_RETURN_IF_NUMBER(a, axis, argsort(a, 0, descending));
  return prim::argsort(a, wrap_axis(axis, a->rank(), a->shape(), "argsort"), descending);
}
Sorted sort(Operand a, int axis, bool descending) {
  LC_SCOPE("sort");
  LC_RETURN_IF_NUMBER(a, axis, sort(a, 0, descending));
  axis = wrap_axis(axis, a->rank(), a->shape(), "sort");
  const Tensor i = prim::argsort(a, axis, descending);
  return {prim::gather(a, i, axis), i};
}
Sorted topk(Operand a, Dim k, int axis, bool largest) {
  LC_SCOPE("topk");
  if (is_number(a, axis) && k == Dim(1)) return number_of(topk(row_of(a), k, 0, largest));
  axis = wrap_axis(axis, a->rank(), a->shape(), "topk");
  if (k.bounds().hi < 0) throw Error("topk", str_cat("k is ", k));
  if (provably_below(a->extent(axis), k))
    throw Error("topk", str_cat("k is ", k, ", axis ", axis, " of ", str(a->shape()), " has fewer elements"));
  const Tensor i = prim::argsort(a, axis, largest).slice(axis, 0, k);
  return {prim::gather(a, i, axis), i};
}

}  // namespace lc
