// The built-in composites that move elements, declared as a user's are.
#include "lightcone/core/definitions.h"
#include "lightcone/core/quant.h"

namespace lc {
namespace {

using namespace prim;
using namespace definitions;
using Operands = std::span<const TensorType>;

int axis_of(const Attributes& a) { return static_cast<int>(a.integer("axis")); }
const QuantInfo& format_of(const Attributes& a) { return info(static_cast<QuantFormat>(a.integer("format"))); }

[[noreturn]] void refuse(const std::string& problem) { throw Error("", problem); }  // of the composite that asked

std::string shapes(Operands in) {
  std::string s;
  for (const TensorType& t : in) s += (s.empty() ? "" : " and ") + str(t.shape);
  return s;
}

void axis_exists(int axis, const Shape& s) {
  if (axis < 0 || axis >= static_cast<int>(s.size())) refuse(str_cat("axis ", axis, " is not an axis of ", str(s)));
}

// Operands 0 and 1 may differ along the axis only.
void along_axis(Operands in, int axis) {
  const Shape &data = in[0].shape, &index = in[1].shape;
  axis_exists(axis, data);
  if (data.size() != index.size()) refuse(shapes(in) + " have different ranks");
  for (std::size_t i = 0; i < data.size(); ++i)
    if (static_cast<int>(i) != axis && !(data[i] == index[i]))
      refuse(str_cat(shapes(in), " differ at axis ", i, ": ", versus(data[i], index[i])));
}

void integer_index(const TensorType& t) {
  if (is_float(t.dtype) || t.dtype == DType::Bool) refuse("the index must be an integer");
}

void same_types(const TensorType& base, const TensorType& source) {
  if (source.dtype != base.dtype) refuse("base and source have different element types");
}

// ---- shapes ------------------------------------------------------------------------------------

std::vector<TensorType> infer_gather(const Attributes& a, Operands in) {
  along_axis(in, axis_of(a));
  integer_index(in[1]);
  return {{in[0].dtype, in[1].shape}};
}

std::vector<TensorType> infer_scatter(const Attributes& a, Operands in) {
  along_axis(in, axis_of(a));
  const Shape &index = in[1].shape, &source = in[2].shape;
  if (index.size() != source.size()) refuse(shapes(in) + " have different ranks");
  for (std::size_t i = 0; i < index.size(); ++i)
    if (!(index[i] == source[i])) refuse(str_cat(shapes(in), " differ at axis ", i, ": ", versus(index[i], source[i])));
  integer_index(in[1]);
  same_types(in[0], in[2]);
  return {in[0]};
}

std::vector<TensorType> infer_slice_scatter(const Attributes& a, Operands in) {
  const int axis = axis_of(a);
  along_axis(in, axis);
  same_types(in[0], in[1]);
  const auto at = static_cast<std::size_t>(axis);
  const Dim &start = a.dim("start"), room = in[0].shape[at] - start - in[1].shape[at];
  if (start.bounds().hi < 0 || room.bounds().hi < 0)
    refuse(str_cat("[", start, ", ", start + in[1].shape[at], ") leaves axis ", axis, " of ", str(in[0].shape)));
  return {in[0]};
}

std::vector<TensorType> infer_argsort(const Attributes& a, Operands in) {
  axis_exists(axis_of(a), in[0].shape);
  return {{DType::I64, in[0].shape}};
}

std::vector<TensorType> infer_dequantize(const Attributes& a, Operands in) {
  const QuantInfo& q = format_of(a);
  Shape s = in[0].shape;
  if (in[0].dtype != DType::U8 || s.empty()) refuse("needs rows of u8 blocks");
  if (!(s.back() % Dim(q.bytes) == Dim(0)))
    refuse(str_cat("rows of ", s.back(), " bytes are not whole ", q.name, " blocks of ", q.bytes));
  s.back() = s.back() / Dim(q.bytes) * Dim(q.elements);
  return {{DType::F32, s}};
}

// ---- definitions -------------------------------------------------------------------------------

// hit[.., j, k, ..] = (index[.., j, ..] == k), the axes j and k side by side at `axis`.
Tensor hits(const Tensor& index, int axis, const Dim& n) {
  Tensor j = index.unsqueeze(axis + 1);
  Shape s = j.shape();
  s[axis + 1] = n;
  j = j.expand(s);
  return equal(j, index_of(j, axis + 1, j.dtype()));
}

// The one-hot sum; an infinity in a row that is not chosen disturbs it.
std::vector<Tensor> define_gather(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const Tensor hit = hits(in[1], axis, in[0].extent(axis));
  const Tensor data = in[0].unsqueeze(axis).expand(hit.shape());
  return {sum_reduce(where(hit, data, like(data, 0)), axis + 1)};
}

std::vector<Tensor> define_scatter_add(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const Tensor hit = hits(in[1], axis, in[0].extent(axis));
  const Tensor src = in[2].unsqueeze(axis + 1).expand(hit.shape());
  return {add(in[0], sum_reduce(where(hit, src, like(src, 0)), axis))};
}

std::vector<Tensor> define_scatter(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const Tensor hit = hits(in[1], axis, in[0].extent(axis));
  const Tensor order = add(index_of(hit, axis, DType::I64), full_like(index_of(hit, axis, DType::I64), 1));
  const Tensor last = max_reduce(where(hit, order, like(order, 0)), axis);  // 1 + the last writer
  const Tensor value = gather(in[2], add(last, like(last, -1)), axis);
  return {where(less_than(like(last, 0), last), value, in[0])};
}

std::vector<Tensor> define_slice_scatter(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const Dim start = a.dim("start"), length = in[1].extent(axis);
  const Tensor src = in[1].pad(axis, start, in[0].extent(axis) - start - length);
  const Dim i = Dim::index(axis, in[0].extent(axis));
  const Dim inside = less(start - 1, i) * less(i, start + length);
  return {where(in[0].graph().index(in[0].shape(), inside, DType::Bool), src, in[0])};
}

// The rank of each element among all of its row, then the inverse of that permutation.
std::vector<Tensor> define_argsort(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const bool descending = a.integer("descending") != 0;
  const Dim len = in[0].extent(axis);
  Tensor x = in[0].unsqueeze(axis + 1), y = in[0].unsqueeze(axis);  // [.., i, j, ..]
  Shape s = x.shape();
  s[axis + 1] = len;
  x = x.expand(s);
  y = y.expand(s);
  const auto less = [](const Tensor& u, const Tensor& v) {
    if (!is_float(u.dtype())) return less_than(u, v);
    return or_(less_than(u, v), and_(is_nan(v), not_(is_nan(u))));
  };
  const Tensor below = descending ? less(x, y) : less(y, x), above = descending ? less(y, x) : less(x, y);
  const Tensor i = index_of(x, axis, DType::I64), j = index_of(x, axis + 1, DType::I64);
  const Tensor first = or_(below, and_(and_(not_(below), not_(above)), less_than(j, i)));
  const Tensor rank = sum_reduce(cast(first, DType::I64), axis + 1);
  const Tensor hit = hits(rank, axis, len);
  return {sum_reduce(mul(cast(hit, DType::I64), index_of(hit, axis, DType::I64)), axis)};
}

// A binary16 from its two bytes, NaN and infinities among them.
Tensor half_from_bytes(const Tensor& low, const Tensor& high) {
  const Tensor upper = cast(high, DType::U16);
  return cast(bitcast(add(cast(low, DType::U16), mul(upper, like(upper, 256))), DType::F16), DType::F32);
}

std::vector<Tensor> define_dequantize(const Attributes& a, std::span<const Tensor> in) {
  const QuantInfo& q = format_of(a);
  Shape s = in[0].shape();
  s.back() = s.back() / Dim(q.bytes);
  s.push_back(q.bytes);
  const Tensor blocks = cast(contiguous(in[0]).reshape(s), DType::F32);
  const int last = blocks.rank() - 1;
  s.back() = q.elements;
  const QuantLayout<Dim> layout = quant_layout<Dim>(q.format, Dim::index(last, q.elements));
  const auto floor_of = [](const Tensor& x) { return add(x, negate(mod(x, like(x, 1)))); };
  const auto bits = [&](const QuantBits<Dim>& b) {
    Graph& g = in[0].graph();
    if (b.width == 0) return g.index(s, 0, DType::F32);
    const Tensor byte = gather(blocks, g.index(s, b.byte), last);
    const Tensor shifted = floor_of(mul(byte, exp2(g.index(s, b.shift * -1, DType::F32))));
    return mul(mod(shifted, like(shifted, 1 << b.width)), like(shifted, 1 << b.place));
  };
  const auto code = [&](const QuantCode<Dim>& c) {
    Tensor v = add(bits(c.low), bits(c.high));
    if (c.is_signed) v = add(v, mul(cast(less_than(like(v, 127.5), v), DType::F32), like(v, -256)));
    return add(v, like(v, c.bias));
  };
  const auto half = [&](int at) {
    return half_from_bytes(blocks.slice(last, at, at + 1), blocks.slice(last, at + 1, at + 2)).expand(s);
  };
  Tensor v = mul(mul(half(layout.d), code(layout.scale)), code(layout.q));
  if (layout.d_min >= 0) v = add(v, negate(mul(half(layout.d_min), code(layout.min))));
  s.pop_back();
  s.back() = s.back() * Dim(q.elements);
  return {v.reshape(s)};
}

// ---- derivatives ---------------------------------------------------------------------------------
// What an index out of range left out has none.

std::vector<Tensor> vjp_gather(const VjpCall& c) {
  return {scatter_add(like(c.x(), 0), c.in[1], c.g(), axis_of(c.attributes)), {}};
}

std::vector<Tensor> vjp_scatter_add(const VjpCall& c) {
  return {c.g(), {}, gather(c.g(), c.in[1], axis_of(c.attributes))};
}

// Of several writers the last one counts: the one whose number is found where it wrote.
std::vector<Tensor> vjp_scatter(const VjpCall& c) {
  const int axis = axis_of(c.attributes);
  const Tensor& index = c.in[1];
  const Tensor order = index_of(index, axis, DType::I64);
  const Tensor writer = scatter(full(index.graph(), c.x().shape(), -1, DType::I64), index, order, axis);
  const Tensor counts = equal(gather(writer, index, axis), order), g = gather(c.g(), index, axis);
  return {scatter(c.g(), index, like(c.in[2], 0), axis), {}, where(counts, g, like(g, 0))};
}

std::vector<Tensor> vjp_slice_scatter(const VjpCall& c) {
  const int axis = axis_of(c.attributes);
  const Dim start = c.attributes.dim("start");
  return {slice_scatter(c.g(), like(c.in[1], 0), axis, start), c.g().slice(axis, start, start + c.in[1].extent(axis))};
}

std::vector<Tensor> no_vjp(const VjpCall& c) { return std::vector<Tensor>(c.in.size()); }

CompositeRef made(const char* name, int arity, decltype(Composite::infer) infer, decltype(Composite::define) define,
                  Vjp vjp) {
  return std::make_shared<const Composite>(Composite{
      .name = name, .arity = arity, .infer = std::move(infer), .define = std::move(define), .vjp = std::move(vjp)});
}

}  // namespace

namespace builtin {
const CompositeRef& gather() {
  static const CompositeRef c = made("gather", 2, infer_gather, define_gather, vjp_gather);
  return c;
}
const CompositeRef& scatter() {
  static const CompositeRef c = made("scatter", 3, infer_scatter, define_scatter, vjp_scatter);
  return c;
}
const CompositeRef& scatter_add() {
  static const CompositeRef c = made("scatter_add", 3, infer_scatter, define_scatter_add, vjp_scatter_add);
  return c;
}
const CompositeRef& slice_scatter() {
  static const CompositeRef c = made("slice_scatter", 2, infer_slice_scatter, define_slice_scatter, vjp_slice_scatter);
  return c;
}
const CompositeRef& argsort() {
  static const CompositeRef c = made("argsort", 1, infer_argsort, define_argsort, no_vjp);
  return c;
}
const CompositeRef& index_in_range() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{
      .name = "index",
      .infer = [](const Attributes&, std::span<const TensorType> in) { return std::vector<TensorType>{in[0]}; },
      .define = [](const Attributes&, std::span<const Tensor> in) { return std::vector<Tensor>{in[0]}; }});
  return c;
}
const CompositeRef& dequantize() {
  static const CompositeRef c = made("dequantize", 1, infer_dequantize, define_dequantize, no_vjp);
  return c;
}
}  // namespace builtin

}  // namespace lc
