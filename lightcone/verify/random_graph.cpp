#include "lightcone/verify/random_graph.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "lightcone/composites/composites.h"
#include "lightcone/core/tensor.h"
#include "lightcone/passes/barrier.h"
#include "lightcone/passes/gradient_marks.h"

namespace lc {
namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomGraphOptions& o)
      : o_(o), random_(seed * 0x9E3779B97F4A7C15u + 1), n_(Dim::symbol("n", seed % 3 ? 1 : 0, 7)) {}
  Graph run();

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> v) {
    return v.begin()[below(static_cast<int>(v.size()))];
  }
  Tensor any() { return pool_[below(static_cast<int>(pool_.size()))]; }
  bool fits(const Shape& s) const { return product(s).bounds().hi <= o_.elements; }
  std::string fresh() { return str_cat("x", names_++); }

  DType dtype();
  Shape shape();
  Tensor input(Shape s, DType t) {
    const bool fixed = std::all_of(s.begin(), s.end(), [](const Dim& d) { return d.is_constant(); });
    return g_.input(fresh(), std::move(s), t, SourceLocation::current(), fixed && chance(30));
  }
  Tensor like(Tensor a, DType t);  // a tensor of a's shape and this dtype
  Tensor like(Tensor a) { return like(a, a.dtype()); }
  Tensor leaf();
  Tensor move(Tensor a);
  Tensor reshape(Tensor a);
  Tensor elementwise();
  Tensor bits_of(Tensor a);
  Tensor reduce(Tensor a);
  Tensor seen(Shape s, DType t);
  std::optional<Tensor> matrix();
  std::optional<Tensor> matrix_of(const Dim& k);
  Tensor contraction();
  Tensor siblings(Tensor a);
  Tensor convolution();
  Tensor attention();
  Tensor composed_attention();
  Tensor normalise();
  Tensor composed_norm(const Tensor& a);
  Tensor structured();
  Tensor quantised();
  Tensor chosen_products();

  RandomGraphOptions o_;
  std::mt19937_64 random_;
  Graph g_;
  std::vector<Tensor> pool_;
  int names_ = 0;
  Dim n_;  // the symbol "n"; in a third of the graphs it may be 0
};

DType Generator::dtype() {
  if (o_.floats_only) return chance(85) ? DType::F32 : DType::F64;
  if (chance(60)) return DType::F32;
  if (chance(8)) return one_of({DType::F8E4M3FN, DType::F8E5M2});
  return one_of({DType::F64, DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8,
                 DType::U16, DType::U32, DType::U64, DType::Bool});
}

Shape Generator::shape() {
  for (;;) {
    Shape s;
    const int rank = one_of({0, 1, 1, 2, 2, 2, 3, 3, 4});
    for (int i = 0; i < rank; ++i)
      s.push_back(o_.symbols && chance(12) ? n_ : Dim(one_of({1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33})));
    if (chance(2) && !s.empty()) s[below(rank)] = 0;
    if (fits(s)) return s;
  }
}

Tensor Generator::leaf() {
  const Shape s = shape();
  switch (below(8)) {
    case 0:
      return full(g_, s, one_of({0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, kInf, -kInf, kNaN}),
                  chance(75) ? DType::F32 : dtype());
    case 1: {
      Dim e = below(7) - 3;
      for (std::size_t i = 0; i < s.size(); ++i) e = e + Dim::index(static_cast<int>(i), s[i]) * Dim(below(5) - 1);
      if (chance(30)) e = e / Dim(1 + below(3));
      if (chance(30)) e = e % Dim(1 + below(4));
      return g_.index(s, e, one_of({DType::I64, DType::I32, DType::U32, DType::U64, DType::F32}));
    }
    default: return input(s, dtype());
  }
}

Tensor Generator::like(Tensor a, DType t) {
  std::vector<Tensor> fitting;
  for (const Tensor& x : pool_)
    if (x.shape() == a.shape() && x.dtype() == t) fitting.push_back(x);
  if (!fitting.empty() && chance(60)) return fitting[below(static_cast<int>(fitting.size()))];
  if (chance(20)) return full_like(prim::cast(a, t), one_of({0.0, 1.0, -1.0, 2.0, 3.0}));
  if (chance(30) && !a.shape().empty()) {  // broadcasts along an axis
    Shape s = a.shape();
    s[below(a.rank())] = 1;
    return input(s, t).expand(a.shape());
  }
  return chance(30) ? prim::cast(a, t) : input(a.shape(), t);
}

Tensor Generator::reshape(Tensor a) {
  const Shape s = a.shape();
  if (s.size() >= 2 && chance(50)) {  // merges two neighbouring axes
    const std::size_t i = static_cast<std::size_t>(below(a.rank() - 1));
    Shape to(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(i));
    to.push_back(s[i] * s[i + 1]);
    to.insert(to.end(), s.begin() + static_cast<std::ptrdiff_t>(i) + 2, s.end());
    return a.reshape(to);
  }
  if (const auto n = product(s).constant(); n && *n > 0) {
    const std::int64_t f = one_of({1, 2, 3, 4, 8});
    if (*n % f == 0) return a.reshape(chance(50) ? Shape{f, *n / f} : Shape{*n / f, f});
  }
  return a.unsqueeze(below(a.rank() + 1));
}

Tensor Generator::move(Tensor a) {
  if (a.rank() == 0) return a.unsqueeze(0);
  const int axis = below(a.rank());
  const auto extent = a.extent(axis).constant();
  switch (below(8)) {
    case 0: {
      std::vector<int> axes(static_cast<std::size_t>(a.rank()));
      for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
      std::shuffle(axes.begin(), axes.end(), random_);
      return a.permute(axes);
    }
    case 1: return reshape(a);
    case 2: {
      if (!extent || *extent < 1) return a;
      const int begin = below(static_cast<int>(*extent)), end = begin + 1 + below(static_cast<int>(*extent) - begin);
      return a.slice(axis, begin, end, one_of({1, 1, 2, 3}));
    }
    case 3: return a.flip(axis);
    case 4: return a.pad(axis, below(3), below(3));
    case 5: {
      Tensor u = a.unsqueeze(below(a.rank() + 1));
      Shape s = u.shape();
      for (Dim& d : s)
        if (d == Dim(1) && chance(60)) d = chance(20) && o_.symbols ? n_ : Dim(2 + below(4));
      return u.expand(s);
    }
    case 6:
      if (!extent || *extent < 2) return a;
      return a.unfold(axis, std::min<std::int64_t>(*extent, 1 + below(3)), 1 + below(2), 1);
    default: return a.rank() >= 2 ? a.transpose(below(a.rank()), below(a.rank())) : a;
  }
}

// Reinterprets bits as another type, often followed by the inverse.
Tensor Generator::bits_of(Tensor a) {
  std::vector<DType> same_size;
  for (const DTypeInfo& t : kDTypes)
    if (t.dtype != DType::Bool && t.bytes == size_of(a.dtype())) same_size.push_back(t.dtype);
  return prim::bitcast(a, same_size[below(static_cast<int>(same_size.size()))]);
}

Tensor Generator::elementwise() {
  const Tensor a = any();
  const bool floating = is_float(a.dtype());
  if (a.dtype() != DType::Bool && chance(4)) return bits_of(a);
  switch (below(floating ? 21 : 14)) {
    case 0: return prim::add(a, like(a));
    case 1: {
      const auto negated = [](const Tensor& t) { return prim::mul(t, full_like(t, -1)); };
      return chance(10) ? negated(negated(a)) : prim::mul(a, like(a));
    }
    case 2: return prim::mod(a, like(a));
    case 3: return prim::less_than(a, like(a));
    case 4: return prim::equal(a, like(a));
    case 5: {
      const Tensor b = like(a), m = prim::maximum(a, b);
      return chance(20) ? prim::maximum(m, b) : m;
    }
    case 6: return prim::minimum(a, like(a));
    case 7: return prim::where(like(a, DType::Bool), a, like(a));
    case 8:
      if (chance(20)) return prim::cast(prim::cast(a, floating ? DType::F64 : DType::I64), a.dtype());
      if (chance(10)) return chance(50) ? behind_barrier(a) : call(gradient_result(), {a})[0];
      return chance(50) ? prim::contiguous(a) : prim::cast(a, dtype());
    case 9: return prim::div(a, like(a));
    case 10: return floating ? prim::log2(a) : prim::bitwise_and(a, like(a));
    case 11: return floating ? prim::exp2(a) : prim::bitwise_or(a, like(a));
    case 12: return floating ? prim::sin(a) : prim::bitwise_xor(a, like(a));
    case 13: return floating ? prim::sqrt(a) : prim::div(a, full_like(a, std::exp2(below(6))));
    case 14: return prim::recip(a);
    case 15: return prim::pow(a, chance(60) ? full_like(a, one_of({2.0, 3.0, 0.5, -1.0, 0.0, 1.0})) : like(a));
    case 16: return prim::exp(a);
    case 17: return prim::cos(a);
    case 18: return prim::add(prim::mul(a, like(a)), full_like(a, one_of({0.5, -1.0, 2.0})));
    case 19: return chance(50) ? prim::floor(a) : prim::round(a);
    default: return prim::mul(a, full_like(a, one_of({0.125, -1.0, 1.0, 0.0})));
  }
}

Tensor Generator::reduce(Tensor a) {
  if (a.rank() == 0) return a;
  const int axis = below(a.rank());
  return chance(55) ? prim::sum_reduce(a, axis) : prim::max_reduce(a, axis);
}

// Returns a view of a new input with this shape: transposed, sliced, reversed, expanded or padded.
Tensor Generator::seen(Shape s, DType t) {
  const int axis = below(static_cast<int>(s.size()));
  Dim& d = s[axis];
  const auto extent = d.constant();
  switch (below(6)) {
    case 0: std::swap(s[s.size() - 1], s[s.size() - 2]); return input(s, t).transpose(-1, -2);
    case 1: return input(s, t).flip(axis);
    case 2: {
      const Dim n = d;
      const int before = below(3);
      d = d + before + below(3);
      return input(s, t).slice(axis, before, n + before);
    }
    case 3: {
      const Shape to = s;
      d = 1;
      return input(s, t).expand(to);
    }
    case 4:
      if (!extent || *extent < 3) return input(s, t);
      d = *extent - 2;
      return input(s, t).pad(axis, 1, 1);
    default: {
      if (!extent || *extent < 1) return input(s, t);
      const std::int64_t n = *extent;
      d = 2 * n - 1;
      return input(s, t).slice(axis, 0, 2 * n - 1, 2);
    }
  }
}

// Returns a matrix, or a stack of matrices, made from an existing tensor by a few views.
std::optional<Tensor> Generator::matrix() {
  Tensor t = prim::cast(any(), DType::F32);
  for (int i = below(3); i > 0; --i) t = move(t);
  while (t.rank() < 2) t = t.unsqueeze(below(t.rank() + 1));
  return t.rank() <= 3 ? std::optional(t) : std::nullopt;
}

// Returns an existing matrix with k rows, if there is one.
std::optional<Tensor> Generator::matrix_of(const Dim& k) {
  for (int tries = 0; tries < 4; ++tries)
    if (const auto t = matrix())
      for (int axis = 0; axis < t->rank(); ++axis)
        if (t->extent(axis) == k) return t->transpose(axis, -2);
  return std::nullopt;
}

// The shape [.., m, k, n] of a product, with the stack axis of either operand.
Shape product_shape(Tensor a, Tensor b) {
  Shape full{a.extent(-2), a.extent(-1), b.extent(-1)};
  if (a.rank() == 3 || b.rank() == 3) full.insert(full.begin(), (a.rank() == 3 ? a : b).extent(0));
  return full;
}
// Computes the sum over k of a[.., m, k] * b[.., k, n].
Tensor product_of(Tensor a, Tensor b) {
  const Shape full = product_shape(a, b);
  const auto wide = [&](Tensor t, int missing) {
    t = t.unsqueeze(t.rank() - missing);
    return (t.rank() < static_cast<int>(full.size()) ? t.unsqueeze(0) : t).expand(full);
  };
  return prim::sum_reduce(prim::mul(wide(a, 0), wide(b, 2)), static_cast<int>(full.size()) - 2);
}
bool small_product(Tensor a, Tensor b) {
  if (a.rank() == 3 && b.rank() == 3 && !(a.extent(0) == b.extent(0))) return false;
  return product(product_shape(a, b)).bounds().hi <= 16 * 1024;
}
Tensor softmax(Tensor a) {
  const int last = a.rank() - 1;
  const auto back = [&](Tensor t) { return t.unsqueeze(last).expand(a.shape()); };
  const Tensor e = prim::exp2(prim::add(a, prim::mul(back(prim::max_reduce(a, last)), full_like(a, -1))));
  return prim::mul(e, prim::recip(back(prim::sum_reduce(e, last))));
}

// Returns a product of existing tensors, of views, or of inputs, perhaps with one stored in a narrow type.
Tensor Generator::contraction() {
  if (chance(50))
    if (const auto a = matrix())
      if (const auto b = chance(15) ? std::optional(a->transpose(-1, -2)) : matrix_of(a->extent(-1)))
        if (small_product(*a, *b)) return product_of(*a, *b);
  const Dim m = one_of({1, 2, 5, 9}), k = one_of({1, 3, 8, 32, 40}),
            n = o_.symbols && chance(15) ? n_ : Dim(one_of({1, 4, 7, 19}));
  const bool batch = chance(25);
  const auto operand = [&](Shape s) {
    if (batch) s.insert(s.begin(), 2);
    const DType t = chance(70) || o_.floats_only ? DType::F32 : one_of({DType::F16, DType::BF16});
    return prim::cast(chance(50) ? seen(s, t) : input(s, t), DType::F32);
  };
  const Tensor a = operand({m, k});
  if (chance(15) && !batch) return siblings(a);
  return product_of(a, operand({k, n}));
}

// Products of the same rows with different weights; one product may feed the epilogue of another.
Tensor Generator::siblings(Tensor a) {
  const DType t = chance(70) || o_.floats_only ? DType::F32 : one_of({DType::F16, DType::BF16});
  const auto product = [&](int n) {
    const Tensor w = g_.parameter(fresh(), {n, a.extent(1)}, t);
    return product_of(a, prim::cast(w, DType::F32).transpose(0, 1));
  };
  const int n = one_of({1, 4, 19});
  const Tensor first = product(n);
  pool_.push_back(product(one_of({n, 7, 32})));
  return chance(50) ? prim::mul(prim::exp2(first), product(n)) : first;
}

// Multiplies windows of an image by filters, with strides, padding, dilation and groups.
Tensor Generator::convolution() {
  const int kernel = one_of({1, 2, 3, 3}), stride = one_of({1, 1, 2}), dilation = one_of({1, 1, 1, 2}), pad = below(3);
  const int groups = one_of({1, 1, 2}), channels = one_of({1, 3, 5}), rows = one_of({1, 2, 4}), batch = 1 + below(2);
  const int least = std::max(1, (kernel - 1) * dilation + 1 - 2 * pad);
  const Dim height = least + below(6),
            width = o_.symbols && least == 1 && n_.bounds().lo >= 1 && chance(15) ? n_ : Dim(least + below(7));
  Tensor x = input({batch, groups, channels, height, width}, DType::F32);
  if (pad > 0) x = x.pad(3, pad, pad).pad(4, pad, pad);
  x = x.unfold(3, kernel, stride, dilation).unfold(4, kernel, stride, dilation).permute({0, 1, 3, 4, 2, 5, 6});
  const Dim h = x.extent(2), w = x.extent(3), depth = channels * kernel * kernel;
  const Shape full{batch, groups, rows, h, w, channels, kernel, kernel}, flat{batch, groups, rows, h, w, depth};
  const Tensor filters = input({groups, rows, channels, kernel, kernel}, DType::F32);
  const Tensor all = prim::mul(x.unsqueeze(2).expand(full).reshape(flat),
                               filters.unsqueeze(2).unsqueeze(2).unsqueeze(0).expand(full).reshape(flat));
  const Tensor y = prim::sum_reduce(all, 5).reshape({batch, groups * rows, h, w});
  if (chance(50)) return y;
  const Tensor bias = input({groups * rows, 1, 1}, DType::F32).expand({groups * rows, h, w}).unsqueeze(0);
  return prim::maximum(prim::add(y, bias.expand(y.shape())), full_like(y, 0));
}

// Attention by name: grouped heads, views of its operands, a causal mask, and a mask that selects or adds.
Tensor Generator::composed_attention() {
  const int kv = one_of({1, 2}), heads = kv * one_of({1, 1, 3});
  const Dim rows = one_of({1, 3, 18}), depth = one_of({1, 4, 16, 33}), width = one_of({5, 16}),
            keys = o_.symbols && chance(20) ? n_ : Dim(one_of({2, 7, 30, 70}));
  const auto operand = [&](int h, Dim a, Dim b) {
    return chance(30) ? input({a, h, b}, DType::F32).transpose(0, 1) : input({h, a, b}, DType::F32);
  };
  std::vector<Tensor> in{operand(heads, rows, depth), operand(kv, keys, depth), operand(kv, keys, width)};
  if (chance(50))
    in.push_back(input(chance(50) ? Shape{rows, keys} : Shape{heads, 1, keys}, chance(60) ? DType::Bool : DType::F32));
  return call(builtin::attention(), in, {{"scale", one_of({0.5, 0.125, 1.0})}, {"causal", chance(30) ? 1 : 0}})[0];
}

// Attention with scales, biases and masks between its products, in any order.
Tensor Generator::attention() {
  if (chance(40)) return composed_attention();
  const Dim rows = one_of({1, 3, 6, 18}), depth = one_of({1, 4, 16, 33}), width = one_of({1, 5, 16}),
            keys = o_.symbols && chance(20) ? n_ : Dim(one_of({2, 7, 30, 70}));
  const bool batch = chance(40);
  const auto operand = [&](Dim a, Dim b) {
    const bool turned = chance(30);
    Shape s = turned ? Shape{b, a} : Shape{a, b};
    if (batch) s.insert(s.begin(), 2);
    const Tensor t = input(s, DType::F32);
    return turned ? t.transpose(-1, -2) : t;
  };
  const Tensor q = operand(rows, depth), k = operand(depth, keys), v = operand(keys, width);
  Tensor s = product_of(q, k);
  for (int i = below(4); i > 0; --i) switch (below(4)) {
      case 0: s = prim::mul(s, full_like(s, one_of({0.5, 0.125, -2.0}))); break;
      case 1: s = prim::add(s, like(s)); break;
      case 2: s = prim::where(like(s, DType::Bool), full_like(s, one_of({-1e9, 0.5, kInf})), s); break;
      default: s = prim::where(like(s, DType::Bool), s, full_like(s, -kInf));
    }
  return product_of(softmax(s), v);
}

// A norm by name, with or without weight and bias.
Tensor Generator::composed_norm(const Tensor& a) {
  const Shape last{a.extent(-1)};
  std::vector<Tensor> in{a};
  if (chance(60)) in.push_back(input(last, DType::F32));
  if (chance(50)) return call(builtin::rms_norm(), in, {{"axes", 1}, {"eps", 0.01}})[0];
  if (in.size() == 2 && chance(50)) in.push_back(input(last, DType::F32));
  return call(builtin::layer_norm(), in, {{"axes", 1}, {"eps", 0.01}})[0];
}

// Softmax or a norm over the last axis: several reductions of one row.
Tensor Generator::normalise() {
  Tensor a = any();
  if (a.dtype() != DType::F32 || a.rank() == 0) a = input({3, 17}, DType::F32);
  if (chance(50)) return softmax(a);
  if (chance(50)) return composed_norm(a);
  const int last = a.rank() - 1;
  const auto back = [&](Tensor t) { return t.unsqueeze(last).expand(a.shape()); };
  const Tensor s = prim::sum_reduce(prim::mul(a, a), last);
  return prim::mul(a, back(prim::recip(prim::sqrt(prim::add(s, full_like(s, 1))))));
}

Tensor Generator::quantised() {
  const QuantFormat f = kQuantFormats[below(static_cast<int>(std::size(kQuantFormats)))].format;
  const int rows = 1 + below(3), blocks = 1 + below(2);
  const Tensor w = prim::dequantize(input({rows, blocks * info(f).bytes}, DType::U8), f);
  if (chance(40)) return w;
  const Dim k = w.extent(1);
  const int m = 1 + below(3);
  const Tensor x = chance(40) ? seen({m, k}, DType::F32) : input({m, k}, DType::F32);
  const Tensor rows_of = chance(25) ? w.flip(below(2)) : w;
  return product_of(x, rows_of.transpose(0, 1));
}

// Rows by matrices that an index chooses, floating or quantised.
Tensor Generator::chosen_products() {
  const int n = 1 + below(6), count = 1 + below(4), m = 1 + below(20);
  const bool blocks = chance(40);
  const QuantFormat f = kQuantFormats[below(static_cast<int>(std::size(kQuantFormats)))].format;
  const int k = blocks ? info(f).elements : 1 + below(9);
  const DType floats = chance(70) ? DType::F32 : chance(50) ? DType::F16 : DType::BF16;
  const Tensor w = blocks ? input({count, m, info(f).bytes}, DType::U8) : input({count, m, k}, floats);
  const Tensor x = chance(40) ? seen({n, k}, DType::F32) : input({n, k}, DType::F32);
  return prim::gather_mm(x, w, input({n}, chance(70) ? DType::I64 : DType::I32),
                         blocks ? std::optional<QuantFormat>(f) : std::nullopt);
}

Tensor Generator::structured() {
  if (chance(20)) return quantised();
  if (chance(15)) return chosen_products();
  Tensor a = any();
  if (a.rank() == 0) a = a.unsqueeze(0);
  const int axis = below(a.rank());
  const auto index = [&](Dim count) {
    Shape s = a.shape();
    s[axis] = count;
    return input(s, chance(70) ? DType::I64 : DType::I32);
  };
  const auto source = [&](Tensor i) { return input(i.shape(), a.dtype()); };
  switch (below(5)) {
    case 0: return prim::gather(a, index(1 + below(4)), axis);
    case 1: {
      const Tensor i = index(1 + below(3));
      return prim::scatter(a, i, source(i), axis);
    }
    case 2: {
      if (a.dtype() == DType::Bool) return a;
      const Tensor i = index(1 + below(3));
      return prim::scatter_add(a, i, source(i), axis);
    }
    case 3: {
      const auto extent = a.extent(axis).constant();
      if (!extent || *extent < 1) return a;
      const int size = 1 + below(static_cast<int>(*extent));
      Shape s = a.shape();
      s[axis] = size;
      return prim::slice_scatter(a, input(s, a.dtype()), axis, below(static_cast<int>(*extent) - size + 1));
    }
    default: return prim::argsort(a, axis, chance(40));
  }
}

Graph Generator::run() {
  for (int i = 0; i < 2 + below(3); ++i) pool_.push_back(leaf());
  while (static_cast<int>(pool_.size()) < o_.nodes) {
    const int kind = below(100);
    Tensor t = kind < 40                    ? elementwise()
               : kind < 66                  ? move(any())
               : kind < 80                  ? reduce(any())
               : kind < 86                  ? contraction()
               : kind < 88                  ? convolution()
               : kind < 91                  ? normalise()
               : kind < 93                  ? attention()
               : kind < 97 && o_.structured ? structured()
                                            : leaf();
    if (fits(t.shape()) && t.rank() <= 5) pool_.push_back(t);
  }
  g_.output("y", pool_.back());
  for (int i = below(3); i > 0; --i) g_.output(str_cat("y", i), any());
  if (chance(20)) {  // adds a state
    const Tensor next = any();
    bool symbolic = false;
    for (const Dim& d : next.shape()) symbolic = symbolic || !d.is_constant();
    if (!symbolic) {
      const Tensor state = g_.input("state", next.shape(), next.dtype());
      g_.assign(state, chance(50) && is_float(next.dtype()) ? prim::add(state, next) : next);
      if (chance(50)) g_.output("before", state);
    }
  }
  return std::move(g_);
}

}  // namespace

Graph random_graph(std::uint64_t seed, const RandomGraphOptions& o) { return Generator(seed, o).run(); }

}  // namespace lc
