// Products of matrices.
#include <algorithm>
#include <map>

#include "lightcone/onnx/parts/quantized.h"
#include "lightcone/ops/linalg/linalg.h"

namespace lc::onnx {
namespace {

void same_type(Call& c, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    c.refuse(str_cat("its operands have the types ", name(a.dtype()), " and ", name(b.dtype())));
}

// The product of a and columns of bytes with their scale: the bytes are multiplied as they are stored, and the scale of
// a column is a factor of the result. Undefined if b is something else.
Tensor product_of_codes(Call& c, const Value& a, const Value& b) {
  if (!b.codes || a.tensor.rank() == 0 || a.tensor.dtype() != DType::F32) return {};
  const Value::Codes& w = *b.codes;
  const bool columns = w.scale.rank() == 0 || (w.bytes.rank() == 2 && w.axis == 1);
  if (!columns) return {};
  if (a.codes && a.codes->scale.rank() == 0) {
    const Tensor y = byte_product(c, a.codes->bytes, a.codes->zero, w.bytes, w.zero);
    return prim::cast(y, DType::F32) * (a.codes->scale * w.scale);
  }
  if (w.bytes.dtype() != DType::I8 || w.zero.defined()) return {};
  return matmul(a.tensor, prim::cast(w.bytes, DType::F32)) * w.scale;
}

Values matmul_(Call& c) {
  const Tensor a = c.x(0), b = c.x(1);
  same_type(c, a, b);
  if (a.rank() == 0 || b.rank() == 0) c.refuse("multiplies a scalar");
  c.importer.same_extent(a.extent(-1), b.extent(b.rank() == 1 ? 0 : -2));
  for (int k = 3; k <= std::min(a.rank(), b.rank()); ++k)
    if (const Dim n = a.extent(-k), m = b.extent(-k); !(n == Dim(1)) && !(m == Dim(1))) c.importer.same_extent(n, m);
  if (const Tensor y = product_of_codes(c, c.value(0), c.value(1)); y.defined()) return {y};
  return {matmul(a, b)};
}

// alpha a b + beta c, where c broadcasts to the result. It is rounded once.
Values gemm(Call& c) {
  Tensor a = c.x(0), b = c.x(1), more = c.optional(2);
  const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  const bool flip_a = c.flag("transA"), flip_b = c.flag("transB");
  c.ignore("broadcast");  // up to operator set 6; the shapes say whether c is spread
  if (a.rank() != 2 || b.rank() != 2) c.refuse("needs two matrices");
  same_type(c, a, b);
  if (more.defined()) same_type(c, a, more);
  if (flip_a) a = a.t();
  c.importer.same_extent(a.extent(1), b.extent(flip_b ? 1 : 0));
  const DType t = a.dtype();
  const bool plain = alpha == 1 && beta == 1;
  if (plain && more.defined() && more.rank() == 1 && is_float(t) && more.extent(0) == b.extent(flip_b ? 0 : 1))
    return {linear(a, flip_b ? b : b.t(), more)};
  const DType wide = is_narrow(t) ? DType::F32 : is_float(t) || plain ? t : DType::F64;
  Tensor r = matmul(a.to(wide), (flip_b ? b.t() : b).to(wide));
  if (alpha != 1) r = r * alpha;
  if (more.defined() && beta != 0) {
    more = expand_to(c, more.to(wide), r.shape());
    r = r + (beta == 1 ? more : more * beta);
  }
  return {r.to(t)};
}

// ---- einsum ---------------------------------------------------------------------------------------

// The letters of an operand's axes; axes of an ellipsis are numbered from the last one, from 1000 on.
std::vector<int> letters(Call& c, std::string_view term, int rank) {
  std::vector<int> r;
  int named = 0;
  for (const char l : term) named += l != '.' && l != ' ';
  for (std::size_t k = 0; k < term.size(); ++k) {
    if (term[k] == ' ') continue;
    if (term[k] != '.') {
      r.push_back(static_cast<unsigned char>(term[k]));
      continue;
    }
    for (int more = rank - named; more > 0; --more) r.push_back(1000 + more);
    while (k + 1 < term.size() && term[k + 1] == '.') ++k;
  }
  if (r.size() != static_cast<std::size_t>(rank)) c.refuse("its equation does not fit the axes of an operand");
  return r;
}
Values einsum_(Call& c) {
  const std::string_view equation = c.text("equation");
  std::string_view rest = equation.substr(0, equation.find("->"));
  std::vector<Tensor> all;
  std::map<int, Dim> extents;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    const Tensor x = c.x(k);
    all.push_back(x);
    same_type(c, all[0], x);
    const std::size_t comma = rest.find(',');
    const std::vector<int> axes = letters(c, rest.substr(0, comma), x.rank());
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    for (int a = 0; a < x.rank(); ++a) {
      const auto [known, fresh] = extents.try_emplace(axes[static_cast<std::size_t>(a)], x.extent(a));
      if (known->second == Dim(1)) known->second = x.extent(a);
      if (!(x.extent(a) == Dim(1))) c.importer.same_extent(known->second, x.extent(a));
    }
  }
  return {einsum(equation, all)};
}

// ---- square matrices ------------------------------------------------------------------------------

template <Tensor (*f)(Operand)>
Values of_square(Call& c) {
  const Tensor x = c.x();
  if (x.rank() < 2) c.refuse("needs a matrix");
  c.importer.same_extent(x.extent(-1), x.extent(-2));
  fixed(c, x.extent(-1), "the size of its matrix");
  return {f(x)};
}

}  // namespace

void add_products(Operators& t) {
  const Operator rows[] = {
      {"", "Det", 11, of_square<lc::det>, "det"},
      {"", "Einsum", 12, einsum_, "einsum"},
      {"", "Gemm", 1, gemm, "linear; addmm with scales"},
      {"", "MatMul", 1, matmul_, "matmul"},
      {kMicrosoft, "Inverse", 1, of_square<lc::inverse>, "inverse"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
