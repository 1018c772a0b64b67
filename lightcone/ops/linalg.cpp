#include <map>

#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor matmul(Operand a, Operand b) {
  LC_SCOPE("matmul");
  const DType type = promote(a->dtype(), b->dtype());
  Tensor x = prim::cast(a, type), y = prim::cast(b, type);
  if (x.rank() == 0 || y.rank() == 0)
    throw Error("matmul", str(x.shape()) + " x " + str(y.shape()) + ": both need at least one axis");
  const bool row = x.rank() == 1, column = y.rank() == 1;
  if (row) x = x.unsqueeze(0);
  if (column) y = y.unsqueeze(1);
  if (!(x.extent(-1) == y.extent(-2)))
    throw Error("matmul", cat(str(a->shape()), " x ", str(b->shape()), ": inner dimensions differ: ", x.extent(-1), " vs ", y.extent(-2)));
  const Dim m = x.extent(-2), k = x.extent(-1), n = y.extent(-1);
  Shape xb = x.shape(), yb = y.shape();
  xb.resize(xb.size() - 2);
  yb.resize(yb.size() - 2);
  Shape batch = broadcast(xb, yb, "matmul"), full = batch;
  full.insert(full.end(), {m, n, k});
  // [..., m, 1, k] * [..., 1, n, k], summed over k
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
    throw Error("linear", cat(str(x->shape()), " with a weight ", str(weight->shape()), ": the last axis must be ", weight->extent(1)));
  return matmul(x, weight->permute({1, 0}));
}
Tensor linear(Operand x, Operand weight, Operand bias) {
  const OpScope scope("linear", x.at);
  return linear(x, weight) + bias.tensor;
}

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  if (operands.empty()) throw Error("einsum", "needs at least one tensor");
  std::string text;
  for (char c : equation)
    if (c != ' ') text += c;
  const std::string original(equation);
  std::string output;
  const auto arrow = text.find("->");
  const bool explicit_output = arrow != text.npos;
  if (explicit_output) {
    output = text.substr(arrow + 2);
    text.resize(arrow);
  }
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == ',') terms.emplace_back();
    else if (std::isalpha(static_cast<unsigned char>(c))) terms.back() += c;
    else throw Error("einsum", cat("'", original, "': letters, commas and an arrow are understood, not '", c, "'"));
  }
  if (terms.size() != operands.size()) throw Error("einsum", cat("'", original, "' names ", terms.size(), " operands, ", operands.size(), " were given"));
  std::map<char, Dim> extents;
  std::map<char, int> seen;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (static_cast<int>(terms[t].size()) != operands[t].rank())
      throw Error("einsum", cat("'", terms[t], "' has ", terms[t].size(), " letters, its tensor is ", str(operands[t].shape())));
    for (std::size_t i = 0; i < terms[t].size(); ++i) {
      const Dim n = operands[t].extent(static_cast<int>(i));
      const auto [it, fresh] = extents.try_emplace(terms[t][i], n);
      if (!fresh && !(it->second == n)) throw Error("einsum", cat("'", terms[t][i], "' is both ", it->second, " and ", n));
      ++seen[terms[t][i]];
    }
  }
  if (!explicit_output)
    for (const auto& [c, n] : seen)
      if (n == 1) output += c;
  std::string order = output;  // the axes of the product: kept ones, then summed ones
  for (char c : output)
    if (!extents.contains(c)) throw Error("einsum", cat("'", c, "' of the result is in no operand"));
  for (const auto& [c, n] : extents)
    if (output.find(c) == output.npos) order += c;
  Shape full;
  for (char c : order) full.push_back(extents.at(c));
  Tensor r;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    Tensor x = operands[t];
    std::string axes = terms[t];
    for (std::size_t i = 0; i < axes.size(); ++i)  // a repeated letter: the diagonal
      for (std::size_t j = axes.size(); j-- > i + 1;)
        if (axes[j] == axes[i]) {
          const Dim n = x.extent(static_cast<int>(i));
          Shape s = x.shape();
          s[j] = 1;
          const Tensor index = x.graph().index(s, Dim::index(static_cast<int>(i), n));
          x = prim::gather(x, index, static_cast<int>(j)).squeeze(static_cast<int>(j));
          axes.erase(j, 1);
        }
    std::vector<int> permutation;
    Shape with_ones;
    for (char c : order) {
      const auto at = axes.find(c);
      if (at != axes.npos) permutation.push_back(static_cast<int>(at));
      with_ones.push_back(at == axes.npos ? Dim(1) : extents.at(c));
    }
    x = x.permute(permutation).reshape(with_ones).expand(full);
    r = r.defined() ? prim::mul(r, x) : x;
  }
  for (std::size_t k = order.size(); k-- > output.size();) r = prim::sum_reduce(r, static_cast<int>(k));
  return r;
}

// ---- normalisation and attention -----------------------------------------------------------------

Tensor layer_norm(Operand x, int axes, double eps) {
  const OpScope scope("layer_norm", x.at);
  Axes over;
  for (int i = -axes; i < 0; ++i) over.push_back(i);
  const Tensor t = as_float(x), d = prim::add(t, neg(mean(t, over, true).expand(t.shape())));
  const Tensor v = mean(prim::mul(d, d), over, true);
  return prim::mul(d, rsqrt(add(v, eps)).expand(t.shape()));
}
Tensor rms_norm(Operand x, double eps) {
  const OpScope scope("rms_norm", x.at);
  const Tensor t = as_float(x);
  return prim::mul(t, rsqrt(add(mean(prim::mul(t, t), {-1}, true), eps)).expand(t.shape()));
}
Tensor group_norm(Operand x, int groups, double eps) {
  const OpScope scope("group_norm", x.at);
  const Dim n = x->extent(0), c = x->extent(1);
  if (!(c % Dim(groups) == Dim(0))) throw Error("group_norm", cat(groups, " groups do not divide ", c, " channels"));
  const Dim rest = product(x->shape()) / (n * Dim(groups));
  return layer_norm(x->reshape({n, groups, rest}), 1, eps).reshape(x->shape());
}
Tensor batch_norm(Operand x, Operand mean, Operand var, Operand weight, Operand bias, double eps) {
  const OpScope scope("batch_norm", x.at);
  Shape s(static_cast<std::size_t>(x->rank()), 1);
  s.at(1) = x->extent(1);
  const Tensor scale = weight.tensor * rsqrt(var.tensor + eps);
  const Tensor shift = bias.tensor - mean.tensor * scale;
  return x.tensor * scale.reshape(s) + shift.reshape(s);
}

namespace {

Tensor attention(const Operand& q, const Operand& k, const Operand& v, const Tensor* mask, double scale) {
  const OpScope scope("scaled_dot_product_attention", q.at);
  const auto d = q->extent(-1).constant();
  if (scale == 0 && !d) throw Error("scaled_dot_product_attention", "give a scale when the head size is symbolic");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(*d));
  Tensor keys = k, values = v;
  const Dim heads = q->extent(-3), kv = k->extent(-3);
  if (!(heads == kv)) {  // each key head serves a group of query heads
    const auto group = (heads / kv).constant();
    if (!group || !(kv * Dim(*group) == heads))
      throw Error("scaled_dot_product_attention", cat(kv, " key heads do not divide ", heads, " query heads"));
    keys = repeat_interleave(keys, static_cast<int>(*group), -3);
    values = repeat_interleave(values, static_cast<int>(*group), -3);
  }
  Tensor scores = mul(matmul(q, keys.transpose(-1, -2)), scale);
  if (mask) scores = masked_fill(scores, logical_not(*mask), -kInf);
  return matmul(softmax(scores, -1), values);
}

}  // namespace

Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, double scale) { return attention(q, k, v, nullptr, scale); }
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, Operand mask, double scale) { return attention(q, k, v, &mask.tensor, scale); }

Tensor rope(Operand x, Operand cos, Operand sin, bool interleaved) {
  const OpScope scope("rope", x.at);
  const Shape s = x->shape();
  const Dim half = s.back() / Dim(2);
  if (!(half * 2 == s.back()) || !(cos->extent(-1) == half))
    throw Error("rope", cat("angles of ", str(cos->shape()), " do not fit ", str(s)));
  Shape pairs = s;
  pairs.back() = interleaved ? half : Dim(2);
  pairs.push_back(interleaved ? Dim(2) : half);
  Tensor t = x->reshape(pairs);
  if (!interleaved) t = t.transpose(-1, -2);
  const int last = t.rank() - 1;
  const Tensor a = t.slice(last, 0, 1), b = t.slice(last, 1, 2);
  const Tensor c = cos->unsqueeze(cos->rank()), n = sin->unsqueeze(sin->rank());
  Tensor r = concat({a * c - b * n, a * n + b * c}, last);
  if (!interleaved) r = r.transpose(-1, -2);
  return r.reshape(s);
}

}  // namespace lc
