// gather_mm: each row times the matrix that its index chooses (MLX's gather_mm; the products of a mixture of experts).
#include "lightcone/composites/internal.h"
#include "lightcone/composites/layers.h"
#include "lightcone/formats/block_formats.h"

namespace lc {
namespace {

using namespace definitions;

// The block format of the matrices; null if they are floating numbers.
const QuantInfo* matrix_format(const Attributes& a) {
  const std::int64_t format = a.integer("format");
  return format < 0 ? nullptr : &info(static_cast<QuantFormat>(format));
}

std::vector<TensorType> infer_gather_mm(const Attributes& a, OperandTypes in) {
  const TensorType &x = in[0], &w = in[1], &index = in[2];
  if (x.shape.size() != 2 || w.shape.size() != 3 || index.shape.size() != 1)
    refuse(str_cat(shapes(in), " are not rows [n, k], matrices [count, m, k] and indices [n]"));
  Dim k = w.shape[2];
  if (const QuantInfo* q = matrix_format(a)) {
    if (w.dtype != DType::U8 || !(k % Dim(q->bytes) == Dim(0)))
      refuse(str_cat("rows of ", k, " of ", name(w.dtype), " are not whole ", q->name, " blocks of ", q->bytes));
    k = k / Dim(q->bytes) * Dim(q->elements);
  } else if (!is_float(w.dtype)) {
    refuse(str_cat("matrices of ", name(w.dtype), " are not floating"));
  }
  if (!is_float(x.dtype)) refuse(str_cat("rows of ", name(x.dtype), " are not floating"));
  integer_index(index);
  if (!(x.shape[1] == k)) refuse(str_cat("rows and matrices differ: ", versus(x.shape[1], k)));
  if (!(x.shape[0] == index.shape[0])) refuse(str_cat("rows and indices differ: ", versus(x.shape[0], index.shape[0])));
  return {{x.dtype, {x.shape[0], w.shape[1]}}};
}

// The matrices in the type of the rows.
Tensor matrices(const Attributes& a, const Tensor& stored, DType type) {
  const QuantInfo* q = matrix_format(a);
  return cast(q ? dequantize(stored, q->format) : stored, type);
}

// Rows by matrices: chosen[count, n, 1].
Tensor chosen(const Tensor& index, const Dim& count) { return hits(index, 0, count).transpose(0, 1).unsqueeze(2); }

// Every row meets every matrix, and those that it did not choose count nothing: a device without a kernel for this
// composite computes all of them, but never has a matrix for each row in memory.
std::vector<Tensor> define_gather_mm(const Attributes& a, std::span<const Tensor> in) {
  const Tensor w = matrices(a, in[1], in[0].dtype());
  const Dim count = w.extent(0);
  const Tensor rows = in[0].unsqueeze(0).expand({count, in[0].extent(0), in[0].extent(1)});
  const Tensor all = matmul(rows, w.transpose(-1, -2));
  return {sum_reduce(where(expand_to(chosen(in[2], count), all.shape()), all, like(all, 0)), 0)};
}

// The cotangent of the rows is a product of the same kind with the transposed matrices.
std::vector<Tensor> vjp_gather_mm(const VjpCall& c) {
  std::vector<Tensor> d(3);
  const Tensor &x = c.in[0], &w = c.in[1], &index = c.in[2], &g = c.g();
  if (c.wanted[0]) d[0] = gather_mm(g, contiguous(matrices(c.attributes, w, x.dtype()).transpose(-1, -2)), index);
  if (c.wanted[1] && !matrix_format(c.attributes)) {
    const Dim count = w.extent(0), n = x.extent(0);
    const Tensor each = g.unsqueeze(0).expand({count, n, g.extent(1)});
    const Tensor mine = where(expand_to(chosen(index, count), each.shape()), each, like(each, 0));
    const Tensor rows = x.unsqueeze(0).expand({count, n, x.extent(1)});
    d[1] = cast(matmul(mine.transpose(-1, -2), rows), w.dtype());
  }
  return d;
}

}  // namespace

namespace builtin {
const CompositeRef& gather_mm() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{
      .name = "gather_mm", .arity = 3, .infer = infer_gather_mm, .define = define_gather_mm, .vjp = vjp_gather_mm});
  return c;
}
}  // namespace builtin

namespace prim {
Tensor gather_mm(Operand rows, Operand matrices, Operand index, std::optional<QuantFormat> format) {
  return call(builtin::gather_mm(), {rows, matrices, index},
              {{"format", format ? std::int64_t{static_cast<int>(*format)} : -1}}, rows.at)[0];
}
}  // namespace prim

}  // namespace lc
