// Views, concatenation and splitting with PyTorch's names. Methods of Tensor (core/tensor.h: permute, transpose,
// reshape, ...) are available as functions, too. Views cost nothing; kernels read through cat, stack, roll, flip and
// pad where they can.
#pragma once

#include <variant>

#include "lightcone/ops/arguments.h"

namespace lc {

// ---- views ------------------------------------------------------------------------------------
Tensor reshape(Operand a, const Shape& shape);  // one extent may be -1 and is inferred
Tensor permute(Operand a, const IntList& dims);
Tensor transpose(Operand a, int dim0, int dim1);
Tensor swapaxes(Operand a, int axis0, int axis1);  // transpose
Tensor swapdims(Operand a, int dim0, int dim1);    // transpose
Tensor t(Operand a);                               // transposes a matrix; lower ranks are unchanged
Tensor expand(Operand a, const Shape& size);       // -1 keeps an extent, as in PyTorch
Tensor broadcast_to(Operand a, const Shape& size);
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors, const Tensor::At& at = Tensor::At::current());
Tensor view_as(Operand a, Operand other);  // reshapes to the shape of other
Tensor expand_as(Operand a, Operand other);
Tensor squeeze(Operand a);                       // removes all axes of extent 1
Tensor squeeze(Operand a, const IntList& dims);  // removes those of `dims` with extent 1
Tensor unsqueeze(Operand a, int dim);
Tensor flatten(Operand a, int start_dim = 0, int end_dim = -1);
Tensor ravel(Operand a);
Tensor unflatten(Operand a, int dim, const Shape& sizes);  // one size may be -1
Tensor movedim(Operand a, const IntList& source, const IntList& destination);
Tensor moveaxis(Operand a, const IntList& source, const IntList& destination);
Tensor narrow(Operand a, int dim, Dim start, Dim length);  // a negative start counts from the end
Tensor select(Operand a, int dim, Dim index);              // removes the axis; negative indices count from the end
Tensor slice(Operand a, int dim, std::int64_t begin, std::int64_t end,
             std::int64_t step = 1);  // Python's a[begin:end:step]
Tensor diagonal(Operand a, int offset = 0, int dim1 = 0, int dim2 = 1);
Tensor atleast_1d(Operand a);
Tensor atleast_2d(Operand a);
Tensor atleast_3d(Operand a);

// ---- indexing, as libtorch writes Python's brackets -------------------------------------------------------
//   index(x, {0, Slice(1, -1), Ellipsis, rows})     x[0, 1:-1, ..., rows]
// A number removes an axis, a Slice keeps it, NewAxis adds one, Ellipsis stands for all other axes. Integer tensors
// select elements as in NumPy: several broadcast to one shape, which replaces the first of them, or comes first if
// other indices separate them. Negative ones count from the end; one out of range reads 0 (see ops.h). Bool tensors
// would make sizes data-dependent: use nonzero() and masked_select(), which have a capacity.
struct Slice {
  std::optional<std::int64_t> begin, end;
  std::int64_t step = 1;
  Slice() = default;
  Slice(std::optional<std::int64_t> begin, std::optional<std::int64_t> end = {}, std::int64_t step = 1)
      : begin(begin), end(end), step(step) {}
};
inline constexpr struct EllipsisIndex {
} Ellipsis;
inline constexpr struct NewAxisIndex {
} NewAxis;  // Python's None
using Index = std::variant<Dim, Slice, EllipsisIndex, NewAxisIndex, Tensor>;
Tensor index(Operand a, const std::vector<Index>& indices);

// ---- concatenation and splitting --------------------------------------------------------------------
Tensor cat(const std::vector<Tensor>& tensors, int dim = 0, const Tensor::At& at = Tensor::At::current());
Tensor concat(const std::vector<Tensor>& tensors, int dim = 0, const Tensor::At& at = Tensor::At::current());
Tensor concatenate(const std::vector<Tensor>& tensors, int dim = 0, const Tensor::At& at = Tensor::At::current());
Tensor stack(const std::vector<Tensor>& tensors, int dim = 0, const Tensor::At& at = Tensor::At::current());
Tensor hstack(const std::vector<Tensor>& tensors, const Tensor::At& at = Tensor::At::current());
Tensor vstack(const std::vector<Tensor>& tensors, const Tensor::At& at = Tensor::At::current());
Tensor dstack(const std::vector<Tensor>& tensors, const Tensor::At& at = Tensor::At::current());
Tensor column_stack(const std::vector<Tensor>& tensors, const Tensor::At& at = Tensor::At::current());
std::vector<Tensor> split(Operand a, const std::vector<Dim>& sizes, int dim = 0);
namespace detail {
std::vector<Tensor> split_by(Operand a, std::int64_t size, int dim);
std::vector<Tensor> split_in(Operand a, std::int64_t sections, int dim);
}  // namespace detail
// Splits into pieces of split_size; the last may be smaller.
template <std::integral Size>
std::vector<Tensor> split(Operand a, Size split_size, int dim = 0) {
  return detail::split_by(a, static_cast<std::int64_t>(split_size), dim);
}
// Splits before each of the indices, which may be negative.
std::vector<Tensor> tensor_split(Operand a, const std::vector<std::int64_t>& indices, int dim = 0);
// Splits into `sections` parts; the first ones are longer by one if needed.
template <std::integral Sections>
std::vector<Tensor> tensor_split(Operand a, Sections sections, int dim = 0) {
  return detail::split_in(a, static_cast<std::int64_t>(sections), dim);
}
std::vector<Tensor> chunk(Operand a, int chunks, int dim = 0);
std::vector<Tensor> unbind(Operand a, int dim = 0);

// ---- padding, shifting and repeating ----------------------------------------------------------------
enum class PadMode : std::uint8_t { Constant, Reflect, Replicate, Circular };
// torch.nn.functional.pad: two numbers per axis, before and after, starting with the last axis. Negative numbers cut,
// in Constant mode only. Reflect excludes the edge and needs n greater than both numbers, Circular needs n at least as
// large, Replicate n >= 1.
Tensor pad(Operand a, const IntList& pad, PadMode mode = PadMode::Constant, Scalar value = 0);
// Pads one axis: [.., n, ..] -> [.., before + n + after, ..].
Tensor pad(Operand a, int axis, int before, int after, PadMode mode = PadMode::Constant, Scalar value = 0);
Tensor roll(Operand a, std::int64_t shift, int dim);
Tensor roll(Operand a, std::int64_t shift);  // rolls all elements in row-major order
Tensor roll(Operand a, const std::vector<std::int64_t>& shifts, const IntList& dims);
Tensor repeat(Operand a, const std::vector<int>& times);                        // torch.Tensor.repeat
Tensor tile(Operand a, const std::vector<int>& dims);                           // repeat(); missing counts are 1
Tensor repeat_interleave(Operand a, int repeats, std::optional<int> dim = {});  // flattens if there is no axis
Tensor flip(Operand a, const IntList& dims);
Tensor fliplr(Operand a);
Tensor flipud(Operand a);
Tensor rot90(Operand a, int k = 1, const IntList& dims = {0, 1});
Tensor diff(Operand a, int n = 1, int dim = -1);  // n-th differences of neighbours
Tensor tril(Operand a, int diagonal = 0);
Tensor triu(Operand a, int diagonal = 0);

}  // namespace lc
