// Views, joints and pieces of tensors, with PyTorch's names. What is a method of Tensor (core/tensor.h: permute,
// transpose, reshape, ...) is here as a function, too. Views cost nothing; cat, stack, roll, flip and pad are read
// through where kernels can.
#pragma once

#include <variant>

#include "lightcone/ops/arguments.h"

namespace lc {

// ---- views ------------------------------------------------------------------------------------
Tensor reshape(Operand a, const Shape& shape);  // one extent may be -1: what is left
Tensor permute(Operand a, const IntList& dims);
Tensor transpose(Operand a, int dim0, int dim1);
Tensor swapaxes(Operand a, int axis0, int axis1);  // transpose
Tensor swapdims(Operand a, int dim0, int dim1);    // transpose
Tensor t(Operand a);                               // of a matrix; a vector and a number stay
Tensor expand(Operand a, const Shape& size);       // -1 keeps an extent, as in torch
Tensor broadcast_to(Operand a, const Shape& size);
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors, const Tensor::At& at = Tensor::At::current());
Tensor view_as(Operand a, Operand other);  // reshaped to the shape of other
Tensor expand_as(Operand a, Operand other);
Tensor squeeze(Operand a);                       // all axes of extent 1 go away
Tensor squeeze(Operand a, const IntList& dims);  // those of extent 1 among them
Tensor unsqueeze(Operand a, int dim);
Tensor flatten(Operand a, int start_dim = 0, int end_dim = -1);
Tensor ravel(Operand a);
Tensor unflatten(Operand a, int dim, const Shape& sizes);  // one of them may be -1
Tensor movedim(Operand a, const IntList& source, const IntList& destination);
Tensor moveaxis(Operand a, const IntList& source, const IntList& destination);
Tensor narrow(Operand a, int dim, Dim start, Dim length);  // a negative start counts from the end
Tensor select(Operand a, int dim, Dim index);              // the axis goes away; a negative index counts from the end
Tensor slice(Operand a, int dim, std::int64_t begin, std::int64_t end,
             std::int64_t step = 1);  // Python's a[begin:end:step]
Tensor diagonal(Operand a, int offset = 0, int dim1 = 0, int dim2 = 1);
Tensor atleast_1d(Operand a);
Tensor atleast_2d(Operand a);
Tensor atleast_3d(Operand a);

// ---- indexing, as libtorch writes Python's brackets -------------------------------------------------------
//   index(x, {0, Slice(1, -1), Ellipsis, rows})     x[0, 1:-1, ..., rows]
// A number takes an axis away, a Slice keeps it, NewAxis adds one, Ellipsis stands for the axes that are not named.
// Tensors of integers pick elements, NumPy's way: several broadcast to one shape, which stands where the first of them
// stood, or in front when something else stands between them. Negative ones count from the end; what is out of range
// reads 0 (see ops.h). Tensors of bools depend on data in their number: nonzero() and masked_select() have a capacity.
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
} NewAxis;  // None
using Index = std::variant<Dim, Slice, EllipsisIndex, NewAxisIndex, Tensor>;
Tensor index(Operand a, const std::vector<Index>& indices);

// ---- joints and pieces --------------------------------------------------------------------------
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
template <std::integral Size>  // one number is the size of each piece; the last may be smaller
std::vector<Tensor> split(Operand a, Size split_size, int dim = 0) {
  return detail::split_by(a, static_cast<std::int64_t>(split_size), dim);
}
// Before each of the places that are given, which may be negative; or in so many parts, the first of them one longer.
std::vector<Tensor> tensor_split(Operand a, const std::vector<std::int64_t>& indices, int dim = 0);
template <std::integral Sections>
std::vector<Tensor> tensor_split(Operand a, Sections sections, int dim = 0) {
  return detail::split_in(a, static_cast<std::int64_t>(sections), dim);
}
std::vector<Tensor> chunk(Operand a, int chunks, int dim = 0);
std::vector<Tensor> unbind(Operand a, int dim = 0);

// ---- elements elsewhere ---------------------------------------------------------------------------
enum class PadMode : std::uint8_t { Constant, Reflect, Replicate, Circular };
// torch.nn.functional.pad: two numbers an axis, before and after, the last axis first. Negative numbers cut, in
// Constant mode alone. Reflect leaves the edge out and needs n above both, Circular needs n to reach both, Replicate n
// >= 1.
Tensor pad(Operand a, const IntList& pad, PadMode mode = PadMode::Constant, Scalar value = 0);
// The same for one axis: [.., n, ..] -> [.., before + n + after, ..].
Tensor pad(Operand a, int axis, int before, int after, PadMode mode = PadMode::Constant, Scalar value = 0);
Tensor roll(Operand a, std::int64_t shift, int dim);
Tensor roll(Operand a, std::int64_t shift);  // of all elements in row-major order
Tensor roll(Operand a, const std::vector<std::int64_t>& shifts, const IntList& dims);
Tensor repeat(Operand a, const std::vector<int>& times);                        // torch.Tensor.repeat
Tensor tile(Operand a, const std::vector<int>& dims);                           // repeat, where missing counts are 1
Tensor repeat_interleave(Operand a, int repeats, std::optional<int> dim = {});  // without an axis of a flat tensor
Tensor flip(Operand a, const IntList& dims);
Tensor fliplr(Operand a);
Tensor flipud(Operand a);
Tensor rot90(Operand a, int k = 1, const IntList& dims = {0, 1});
Tensor diff(Operand a, int n = 1, int dim = -1);  // of neighbours, n times
Tensor tril(Operand a, int diagonal = 0);
Tensor triu(Operand a, int diagonal = 0);

}  // namespace lc
