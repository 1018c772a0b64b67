// Rules for products: dot, dot_general, convolution, and the factorisations of linear algebra.
#include <algorithm>
#include <numeric>

#include "lightcone/ops/linalg/linalg.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

// Returns the factors in the type of the product.
std::pair<Tensor, Tensor> factors(const Call& c) {
  if (c.in.size() < 2) c.refuse("takes two operands");
  const DType to = c.dtype();
  const auto widened = [&](const Tensor& t) { return t.dtype() == to ? t : prim::cast(t, to); };
  return {widened(c.in[0]), widened(c.in[1])};
}

void check_axes(const Call& c, const Integers& axes, int rank) {
  Integers sorted = axes;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end() ||
      (!sorted.empty() && (sorted[0] < 0 || sorted.back() >= rank)))
    c.refuse("its dimension numbers are not different axes of the operands");
}

// Axes in the order batch, free, summed, each kind joined to one axis.
struct Matrices {
  Tensor t;  // [batch, free, summed]
  Shape batch, free;
};
Matrices matrices(const Call& c, const Tensor& x, const Integers& batch, const Integers& summed) {
  Integers all = batch;
  all.insert(all.end(), summed.begin(), summed.end());
  check_axes(c, all, x.rank());
  Matrices m;
  std::vector<int> order(batch.begin(), batch.end());
  for (const int a : order) m.batch.push_back(x.extent(a));
  for (int a = 0; a < x.rank(); ++a)
    if (std::ranges::find(all, a) == all.end()) order.push_back(a), m.free.push_back(x.extent(a));
  Shape sum;
  for (const std::int64_t a : summed)
    order.push_back(static_cast<int>(a)), sum.push_back(x.extent(static_cast<int>(a)));
  m.t = x.permute(order).reshape({product(m.batch), product(m.free), product(sum)});
  return m;
}

Tensor dot(const Call& c, const Integers& a_batch, const Integers& a_sum, const Integers& b_batch,
           const Integers& b_sum) {
  const auto both = factors(c);
  const Tensor &a = both.first, &b = both.second;
  const Matrices l = matrices(c, a, a_batch, a_sum), r = matrices(c, b, b_batch, b_sum);
  const auto fits = [&](const Integers& p, const Integers& q) {
    if (p.size() != q.size()) return false;
    for (std::size_t k = 0; k < p.size(); ++k)
      if (!(a.extent(static_cast<int>(p[k])) == b.extent(static_cast<int>(q[k])))) return false;
    return true;
  };
  if (!fits(a_batch, b_batch) || !fits(a_sum, b_sum))
    c.refuse(str_cat(lc::str(a.shape()), " and ", lc::str(b.shape()), " do not fit"));
  const Tensor product =
      c.dtype() == DType::Bool
          ? prim::max_reduce(
                prim::mul(l.t.unsqueeze(2).expand({l.t.extent(0), l.t.extent(1), r.t.extent(1), l.t.extent(2)}),
                          r.t.unsqueeze(1).expand({l.t.extent(0), l.t.extent(1), r.t.extent(1), l.t.extent(2)})),
                3)
          : matmul(l.t, r.t.transpose(1, 2));
  Shape s = l.batch;
  s.insert(s.end(), l.free.begin(), l.free.end());
  s.insert(s.end(), r.free.begin(), r.free.end());
  return product.reshape(s);
}

std::vector<Tensor> dot_general(const Call& c) {
  const AttributeList& d = c.fields("dot_dimension_numbers");
  return {dot(c, integers_of(d, "lhs_batching_dimensions"), integers_of(d, "lhs_contracting_dimensions"),
              integers_of(d, "rhs_batching_dimensions"), integers_of(d, "rhs_contracting_dimensions"))};
}
// A product of vectors and matrices.
std::vector<Tensor> dot_simple(const Call& c) {
  if (c.in.size() != 2 || c.in[0].rank() < 1 || c.in[0].rank() > 2 || c.in[1].rank() < 1 || c.in[1].rank() > 2)
    c.refuse("is of vectors and matrices");
  return {dot(c, {}, {c.in[0].rank() - 1}, {}, {0})};
}

// ---- convolutions -----------------------------------------------------------------------------------

struct Layout {
  int first, second;  // batch and features; or output and input features
  std::vector<int> spatial;
  std::vector<int> order() const {  // first, second, spatial axes
    std::vector<int> o = {first, second};
    o.insert(o.end(), spatial.begin(), spatial.end());
    return o;
  }
};
Layout layout(const Call& c, const AttributeList& d, const std::string& side, const std::string& first,
              const std::string& second, int rank) {
  Layout l{static_cast<int>(integer_of(d, side + first, -1)), static_cast<int>(integer_of(d, side + second, -1)), {}};
  for (const std::int64_t a : integers_of(d, side + "_spatial_dimensions")) l.spatial.push_back(static_cast<int>(a));
  std::vector<int> sorted = l.order();
  std::ranges::sort(sorted);
  std::vector<int> all(static_cast<std::size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) c.refuse("its dimension numbers are not the axes of the operands");
  return l;
}

Tensor convolved(const Tensor& x, const Tensor& kernel, const Integers& stride, const Integers& dilation,
                 std::int64_t groups) {
  ConvOptions o;
  o.stride.assign(stride.begin(), stride.end());
  o.dilation.assign(dilation.begin(), dilation.end());
  o.groups = static_cast<int>(groups);
  if (stride.empty()) {  // no spatial axes: matrix products
    const Dim g = groups, n = x.extent(0), in = x.extent(1) / g, out = kernel.extent(0) / g;
    const Tensor a = x.reshape({n, g, in}).transpose(0, 1), b = kernel.reshape({g, out, in}).transpose(1, 2);
    return matmul(a, b).transpose(0, 1).reshape({n, g * out});
  }
  return conv(x, kernel, o);
}

std::vector<Tensor> convolution_with(const Call& c, const Integers& padding) {
  auto [x, kernel] = factors(c);
  const AttributeList& d = c.fields("dimension_numbers");
  if (x.rank() < 2 || kernel.rank() != x.rank()) c.refuse("operands have two axes and the spatial ones");
  const auto n = static_cast<std::size_t>(x.rank() - 2);
  if (n > 3) c.refuse("has more than three spatial axes");
  const Layout in = layout(c, d, "input", "_batch_dimension", "_feature_dimension", x.rank());
  const Layout k = layout(c, d, "kernel", "_output_feature_dimension", "_input_feature_dimension", x.rank());
  const Layout out = layout(c, d, "output", "_batch_dimension", "_feature_dimension", x.rank());
  const Integers stride = c.integers("window_strides", n, 1), dilation = c.integers("rhs_dilation", n, 1);
  const Integers base = c.integers("lhs_dilation", n, 1), reversal = c.integers("window_reversal", n, 0);
  const std::int64_t groups = c.integer("feature_group_count", 1), batches = c.integer("batch_group_count", 1);
  const auto in_range = [](std::int64_t v) { return v >= 1 && v < (1 << 30); };
  if (!std::ranges::all_of(stride, in_range) || !std::ranges::all_of(dilation, in_range) ||
      !std::ranges::all_of(base, in_range) || !in_range(groups) || !in_range(batches) || padding.size() != 2 * n)
    c.refuse("strides, dilations and groups are at least 1, and there are two paddings an axis");
  x = x.permute(in.order()), kernel = kernel.permute(k.order());
  Integers low(2, 0), high(2, 0), between(2, 0);
  for (std::size_t a = 0; a < n; ++a)
    low.push_back(padding[2 * a]), high.push_back(padding[2 * a + 1]), between.push_back(base[a] - 1);
  x = padded(x, full(c.graph(), {}, 0, x.dtype()), low, high, between);
  for (std::size_t a = 0; a < n; ++a)
    if (reversal[a]) kernel = kernel.flip(static_cast<int>(a) + 2);
  bool none = false;  // no window fits
  Shape windows;      // number of windows along each axis
  for (std::size_t a = 0; a < n; ++a) {
    const int axis = static_cast<int>(a) + 2;
    const std::int64_t size = *kernel.extent(axis).constant(), there = *x.extent(axis).constant();
    const bool fits = size == 0 || (there > 0 && size - 1 <= (there - 1) / dilation[a]);
    none |= !fits;
    windows.push_back(fits ? (there - (size - 1) * dilation[a] - 1) / stride[a] + 1 : 0);
  }
  std::int64_t all_groups = groups;
  if (batches > 1) {  // batch [g, n] and features f: n images of features [g, f]
    if (groups > 1) c.refuse("groups both batches and features");
    if (!(x.extent(0) % Dim(batches) == Dim(0))) c.refuse("the batch is not a multiple of its groups");
    Shape s = x.shape();
    const Dim each = x.extent(0) / Dim(batches);
    s.insert(s.begin(), batches), s[1] = each;
    Shape joined = x.shape();
    joined[0] = each, joined[1] = joined[1] * Dim(batches);
    x = x.reshape(s).transpose(0, 1).reshape(joined);
    all_groups = batches;
  }
  Shape empty = {x.extent(0), kernel.extent(0)};
  empty.insert(empty.end(), windows.begin(), windows.end());
  const Tensor y = none ? full(c.graph(), empty, 0, c.dtype()) : convolved(x, kernel, stride, dilation, all_groups);
  std::vector<int> back(static_cast<std::size_t>(y.rank()));
  const std::vector<int> order = out.order();
  for (std::size_t a = 0; a < order.size(); ++a) back[order[a]] = static_cast<int>(a);
  return {y.permute(back)};
}
std::vector<Tensor> convolution(const Call& c) {
  const std::size_t n = c.in.empty() || c.x().rank() < 2 ? 0 : static_cast<std::size_t>(c.x().rank() - 2);
  return convolution_with(c, c.integers("padding", 2 * n, 0));
}
std::vector<Tensor> dynamic_convolution(const Call& c) {
  const auto padding = c.in.size() == 3 ? c.reader.known(c.in[2]) : std::nullopt;
  if (!padding) c.refuse("its padding depends on data");
  return convolution_with(c, *padding);
}

// An operation of older modules: "ab,bc->ac".
std::vector<Tensor> einsum_of(const Call& c) { return {einsum(c.word("einsum_config"), {c.in.begin(), c.in.end()})}; }

// ---- linear algebra ---------------------------------------------------------------------------------

std::vector<Tensor> cholesky_of(const Call& c) {
  const bool lower = c.op.find("lower") ? c.flag("lower") : false;
  const Tensor& a = c.x();
  if (a.rank() < 2) c.refuse("is of matrices");
  if (lower) return {cholesky(a)};
  return {cholesky(a.transpose(-1, -2)).transpose(-1, -2)};
}

std::vector<Tensor> triangular_solve(const Call& c) {
  if (c.in.size() != 2 || c.x().rank() < 2) c.refuse("takes two tensors of matrices");
  Tensor a = c.in[0];
  bool upper = !c.flag("lower");
  const std::string how = c.word("transpose_a", "NO_TRANSPOSE");
  if (how == "TRANSPOSE" || how == "ADJOINT") a = a.transpose(-1, -2), upper = !upper;
  return {linalg::solve_triangular(a, c.in[1], upper, c.flag("left_side"), c.flag("unit_diagonal"))};
}

}  // namespace

void add_products(Rules& r) {
  r["stablehlo.dot_general"] = dot_general;
  r["stablehlo.dot"] = dot_simple;
  r["stablehlo.convolution"] = convolution;
  r["stablehlo.dynamic_conv"] = dynamic_convolution;
  r["stablehlo.einsum"] = einsum_of;
  r["stablehlo.unary_einsum"] = einsum_of;
  r["stablehlo.cholesky"] = cholesky_of;
  r["stablehlo.triangular_solve"] = triangular_solve;
}

}  // namespace lc::stablehlo
