// Products and norms.
#include "lightcone/ops/internal.h"

#include <algorithm>
#include <cmath>
#include "lightcone/ops/linalg/linalg.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

void ranks(const Operand& a, int of_a, const Operand& b, int of_b, const char* op) {
  if (a->rank() != of_a || b->rank() != of_b)
    throw Error(op, str_cat(str(a->shape()), " x ", str(b->shape()), ": the ranks are ", of_a, " and ", of_b));
}

}  // namespace

Tensor mm(Operand a, Operand b) {
  LC_SCOPE("mm");
  ranks(a, 2, b, 2, "mm");
  return matmul(a, b);
}
Tensor bmm(Operand a, Operand b) {
  LC_SCOPE("bmm");
  ranks(a, 3, b, 3, "bmm");
  if (!(a->extent(0) == b->extent(0)))
    throw Error("bmm", str_cat(str(a->shape()), " x ", str(b->shape()), ": batches differ: ", a->extent(0), " vs ",
                               b->extent(0)));
  return matmul(a, b);
}
Tensor mv(Operand a, Operand v) {
  LC_SCOPE("mv");
  ranks(a, 2, v, 1, "mv");
  return matmul(a, v);
}
Tensor dot(Operand a, Operand b) {
  LC_SCOPE("dot");
  ranks(a, 1, b, 1, "dot");
  return matmul(a, b);
}
Tensor vdot(Operand a, Operand b) {
  LC_SCOPE("vdot");
  ranks(a, 1, b, 1, "vdot");
  return matmul(a, b);
}
Tensor inner(Operand a, Operand b) {
  LC_SCOPE("inner");
  if (a->rank() == 0 || b->rank() == 0) return a * b;
  return tensordot(a, b, {-1}, {-1});
}

namespace {

// Computes beta * input + alpha * product, in the promoted type of input and product.
template <class Product>
Tensor added(const char* op, const Operand& input, const Operand& a, const Operand& b, double beta, double alpha,
             const Product& product) {
  const OpScope scope(op, input.at);
  const DType type = promote(input->dtype(), promote(a->dtype(), b->dtype()));
  if (!is_float(type) && (beta != std::floor(beta) || alpha != std::floor(alpha)))
    throw Error(op, str_cat("beta and alpha of ", name(type), " are whole, not ", beta, " and ", alpha));
  const DType exact = is_narrow(type) ? DType::F32 : type;
  const auto wide = [&](const Operand& t) { return Operand(prim::cast(t, exact), t.at); };
  Tensor y = product(wide(a), wide(b));
  if (alpha != 1) y = mul(y, alpha);
  const Shape s = y.shape();
  if (const Shape to = broadcast(input->shape(), s, op); to != s)
    throw Error(op, str_cat("an input ", str(input->shape()), " does not stretch to ", str(s)));
  if (beta != 0) {
    const Tensor first = expand_to(wide(input).tensor, s);
    y = prim::add(beta == 1 ? first : mul(first, beta), y);
  }
  return prim::cast(y, type);
}

}  // namespace

Tensor addmm(Operand input, Operand a, Operand b, double beta, double alpha) {
  return added("addmm", input, a, b, beta, alpha, [](Operand x, Operand y) { return mm(x, y); });
}
Tensor addmv(Operand input, Operand a, Operand v, double beta, double alpha) {
  return added("addmv", input, a, v, beta, alpha, [](Operand x, Operand y) { return mv(x, y); });
}
Tensor addr(Operand input, Operand a, Operand b, double beta, double alpha) {
  return added("addr", input, a, b, beta, alpha, [](Operand x, Operand y) { return outer(x, y); });
}
Tensor baddbmm(Operand input, Operand a, Operand b, double beta, double alpha) {
  return added("baddbmm", input, a, b, beta, alpha, [](Operand x, Operand y) { return bmm(x, y); });
}
Tensor addbmm(Operand input, Operand a, Operand b, double beta, double alpha) {
  return added("addbmm", input, a, b, beta, alpha, [](Operand x, Operand y) { return prim::sum_reduce(bmm(x, y), 0); });
}

namespace {

// The optimal order of a chain of products [n0, n1], [n1, n2], ...: T. H. Cormen et al., "Introduction to algorithms",
// 15.2.
class Chain {
 public:
  explicit Chain(const std::vector<Tensor>& m) : m_(m) {
    for (const Tensor& t : m) n_.push_back(t.extent(0).constant());
    n_.push_back(m.back().extent(1).constant());
    known_ = std::ranges::all_of(n_, [](const auto& n) { return n.has_value(); });
    if (known_) plan();
  }
  Tensor product(std::size_t first, std::size_t last) const {  // product of m[first .. last]
    if (first == last) return m_[first];
    const std::size_t cut = known_ ? cut_[first][last] : last - 1;
    return matmul(product(first, cut), product(cut + 1, last));
  }

 private:
  void plan() {
    const std::size_t count = m_.size();
    std::vector<std::vector<double>> work(count, std::vector<double>(count, 0));
    cut_.assign(count, std::vector<std::size_t>(count, 0));
    for (std::size_t length = 1; length < count; ++length)
      for (std::size_t i = 0; i + length < count; ++i) {
        const std::size_t j = i + length;
        work[i][j] = kInf;
        for (std::size_t k = i; k < j; ++k) {
          const double w = work[i][k] + work[k + 1][j] + size(i) * size(k + 1) * size(j + 1);
          if (w < work[i][j]) work[i][j] = w, cut_[i][j] = k;
        }
      }
  }
  double size(std::size_t k) const { return static_cast<double>(*n_[k]); }

  const std::vector<Tensor>& m_;
  std::vector<std::optional<std::int64_t>> n_;
  std::vector<std::vector<std::size_t>> cut_;
  bool known_ = false;
};

}  // namespace

Tensor chain_matmul(const std::vector<Tensor>& matrices, const Tensor::At& at) {
  const OpScope scope("chain_matmul", at);
  if (matrices.empty()) throw Error("chain_matmul", "needs at least one matrix");
  std::vector<Tensor> m = matrices;
  const bool row = m.size() > 1 && m.front().rank() == 1, column = m.size() > 1 && m.back().rank() == 1;
  if (row) m.front() = m.front().unsqueeze(0);
  if (column) m.back() = m.back().unsqueeze(1);
  for (std::size_t k = 0; k < m.size(); ++k) {
    if (m[k].rank() != 2) throw Error("chain_matmul", "needs matrices, not " + str(m[k].shape()));
    if (k && !(m[k - 1].extent(1) == m[k].extent(0)))
      throw Error("chain_matmul", str_cat(str(m[k - 1].shape()), " x ", str(m[k].shape()),
                                          ": inner dimensions differ: ", m[k - 1].extent(1), " vs ", m[k].extent(0)));
  }
  Tensor y = Chain(m).product(0, m.size() - 1);
  if (column) y = y.squeeze(1);
  return row ? y.squeeze(0) : y;
}

Tensor tensordot(Operand a, Operand b, Axes axes_a, Axes axes_b) {
  LC_SCOPE("tensordot");
  if (axes_a.size() != axes_b.size())
    throw Error("tensordot", str_cat(axes_a.size(), " axes of the first tensor, ", axes_b.size(), " of the second"));
  // [free axes of a, summed] x [summed, free axes of b]
  const auto split = [](const Operand& t, Axes& axes, bool sums_last, Shape& left, Dim& summed) {
    for (int& x : axes) x = wrap_axis(x, t->rank(), t->shape(), "tensordot");
    Axes order, rest;
    for (int i = 0; i < t->rank(); ++i)
      if (std::ranges::count(axes, i) == 0) rest.push_back(i);
    if (rest.size() + axes.size() != static_cast<std::size_t>(t->rank()))
      throw Error("tensordot", "an axis is named twice");
    Dim outside = 1;
    for (const int i : rest) left.push_back(t->extent(i)), outside = outside * t->extent(i);
    summed = 1;
    for (const int i : axes) summed = summed * t->extent(i);
    order = sums_last ? rest : axes;
    order.insert(order.end(), (sums_last ? axes : rest).begin(), (sums_last ? axes : rest).end());
    return t->permute(order).reshape(sums_last ? Shape{outside, summed} : Shape{summed, outside});
  };
  Shape left;
  Dim of_a, of_b;
  const Tensor x = split(a, axes_a, true, left, of_a), y = split(b, axes_b, false, left, of_b);
  for (std::size_t k = 0; k < axes_a.size(); ++k)
    if (const Dim p = a->extent(axes_a[k]), q = b->extent(axes_b[k]); !(p == q))
      throw Error("tensordot", str_cat("axis ", axes_a[k], " of ", str(a->shape()), " and axis ", axes_b[k], " of ",
                                       str(b->shape()), " differ: ", p, " vs ", q));
  return matmul(x, y).reshape(left);
}
Tensor tensordot(Operand a, Operand b, int dims) {
  LC_SCOPE("tensordot");
  if (dims < 0 || dims > a->rank() || dims > b->rank())
    throw Error("tensordot", str_cat(dims, " axes of ", str(a->shape()), " and ", str(b->shape())));
  Axes x, y;
  for (int i = 0; i < dims; ++i) x.push_back(a->rank() - dims + i), y.push_back(i);
  return tensordot(a, b, x, y);
}

Tensor kron(Operand a, Operand b) {
  LC_SCOPE("kron");
  const int r = std::max(a->rank(), b->rank());
  Shape x = a->shape(), y = b->shape(), wide_a, wide_b, joined;
  x.insert(x.begin(), static_cast<std::size_t>(r) - x.size(), 1);
  y.insert(y.begin(), static_cast<std::size_t>(r) - y.size(), 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    wide_a.insert(wide_a.end(), {x[i], 1});
    wide_b.insert(wide_b.end(), {1, y[i]});
    joined.push_back(x[i] * y[i]);
  }
  return (a->reshape(wide_a) * b->reshape(wide_b)).reshape(joined);
}

Tensor cross(Operand a, Operand b, int axis) {
  LC_SCOPE("cross");
  LC_RETURN_IF_EITHER_HALF(a, b, cross(a, b, axis));
  const Pair p = promoted(a, b, "cross");
  axis = wrap_axis(axis, p.a.rank(), p.a.shape(), "cross");
  if (!(p.a.extent(axis) == Dim(3)))
    throw Error("cross",
                str_cat("axis ", axis, " of ", str(p.a.shape()), " has ", p.a.extent(axis), " elements, not 3"));
  const auto part = [axis](const Tensor& t, int k) { return t.slice(axis, k % 3, k % 3 + 1); };
  std::vector<Tensor> parts;
  for (int k = 0; k < 3; ++k)
    parts.push_back(
        prim::add(prim::mul(part(p.a, k + 1), part(p.b, k + 2)), neg(prim::mul(part(p.a, k + 2), part(p.b, k + 1)))));
  return concat(parts, axis);
}
Tensor cross(Operand a, Operand b) {
  LC_SCOPE("cross");
  const Shape s = broadcast(a->shape(), b->shape(), "cross");
  for (std::size_t i = 0; i < s.size(); ++i)
    if (s[i] == Dim(3)) return cross(a, b, static_cast<int>(i));
  throw Error("cross", "no axis of " + str(s) + " has 3 elements");
}
Tensor linalg::cross(Operand a, Operand b, int axis) { return lc::cross(a, b, axis); }
Tensor linalg::vecdot(Operand a, Operand b, int axis) {
  LC_SCOPE("vecdot");
  LC_RETURN_IF_EITHER_HALF(a, b, vecdot(a, b, axis));
  const Pair p = promoted(a, b, "vecdot");
  if (is_number(Operand(p.a, a.at), axis)) return prim::mul(p.a, p.b);
  return prim::sum_reduce(prim::mul(p.a, p.b), wrap_axis(axis, p.a.rank(), p.a.shape(), "vecdot"));
}

Tensor vector_norm(Operand a, double p, Axes axes, bool keepdim) {
  LC_SCOPE("vector_norm");
  return norm(a, p, std::move(axes), keepdim);
}

namespace {

Axes two_axes(const Operand& a, Axes axes) {
  if (axes.size() != 2) throw Error("matrix_norm", str_cat("a matrix has two axes, not ", axes.size()));
  for (int& x : axes) x = wrap_axis(x, a->rank(), a->shape(), "matrix_norm");
  if (axes[0] == axes[1]) throw Error("matrix_norm", "the two axes are one");
  return axes;
}

// Returns singular values, as a last axis, of the matrices spanned by two axes.
Tensor singular_values(const Operand& a, const Axes& axes) {
  std::vector<int> order;
  for (int k = 0; k < a->rank(); ++k)
    if (k != axes[0] && k != axes[1]) order.push_back(k);
  order.insert(order.end(), {axes[0], axes[1]});
  return linalg::svdvals(Operand(as_float(a).permute(order), a.at));
}
// Restores the two axes with extent 1.
Tensor with_axes(const Tensor& y, const Axes& axes) {
  return y.unsqueeze(std::min(axes[0], axes[1])).unsqueeze(std::max(axes[0], axes[1]));
}

}  // namespace

Tensor matrix_norm(Operand a, std::string_view ord, Axes axes, bool keepdim) {
  LC_SCOPE("matrix_norm");
  axes = two_axes(a, std::move(axes));
  if (ord == "fro") return vector_norm(a, 2, axes, keepdim);
  if (ord != "nuc")
    throw Error("matrix_norm", str_cat("there is no norm \"", ord, "\": \"fro\", \"nuc\", 1, -1, 2, -2, inf and -inf"));
  LC_RETURN_IF_HALF(a, matrix_norm(a, ord, std::move(axes), keepdim));
  const Tensor y = sum(singular_values(a, axes), {-1});
  return keepdim ? with_axes(y, axes) : y;
}
Tensor matrix_norm(Operand a, double ord, Axes axes, bool keepdim) {
  LC_SCOPE("matrix_norm");
  LC_RETURN_IF_HALF(a, matrix_norm(a, ord, std::move(axes), keepdim));
  axes = two_axes(a, std::move(axes));
  if (std::abs(ord) == 2) {
    const Tensor s = singular_values(a, axes), y = ord > 0 ? amax(s, {-1}) : amin(s, {-1});
    return keepdim ? with_axes(y, axes) : y;
  }
  if (std::abs(ord) != 1 && !std::isinf(ord))
    throw Error("matrix_norm", str_cat("there is no norm ", ord, ": \"fro\", \"nuc\", 1, -1, 2, -2, inf and -inf"));
  const bool columns = std::abs(ord) == 1;
  const Tensor sums = sum(abs(as_float(a)), {columns ? axes[0] : axes[1]}, true);
  const Axes other{columns ? axes[1] : axes[0]};
  const Tensor y = ord > 0 ? amax(sums, other, true) : amin(sums, other, true);
  return keepdim ? y : y.squeeze(std::max(axes[0], axes[1])).squeeze(std::min(axes[0], axes[1]));
}

Tensor cdist(Operand a, Operand b, double p) {
  LC_SCOPE("cdist");
  LC_RETURN_IF_EITHER_HALF(a, b, cdist(a, b, p));
  if (a->rank() < 2 || b->rank() < 2 || !(a->extent(-1) == b->extent(-1)))
    throw Error("cdist", str_cat(str(a->shape()), " and ", str(b->shape()), " are not [.., p, m] and [.., r, m]"));
  if (!(p >= 0)) throw Error("cdist", str_cat("a norm of ", p));
  const Tensor difference = a->unsqueeze(-2) - b->unsqueeze(b->rank() - 2);
  if (difference.extent(-1) == Dim(0)) return sum(as_float(difference), {-1});
  return vector_norm(difference, p, {-1});
}

}  // namespace lc
