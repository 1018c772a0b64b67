#include "lightcone/nn/linear.h"

#include <algorithm>
#include <cmath>

#include "lightcone/core/composite.h"

namespace lc::nn {

void Bilinear::visit(Visitor& v) {
  const Init init = uniform_init(in1_ > 0 ? 1 / std::sqrt(static_cast<double>(in1_)) : 0);
  v.parameter("weight", weight, {out_, in1_, in2_}, init);
  if (o_.bias) v.parameter("bias", bias, {out_}, init);
}

lc::Tensor Bilinear::operator()(const lc::Tensor& a, const lc::Tensor& b, const At& at) const {
  const OpScope scope("Bilinear", at);
  require_visited("Bilinear", weight);
  Shape s = a.shape(), t = b.shape();
  const bool fits = !s.empty() && s.size() == t.size() && s.back() == Dim(in1_) && t.back() == Dim(in2_);
  t.back() = s.back();
  if (!fits || s != t)
    throw Error("Bilinear",
                str_cat(str(a.shape()), " and ", str(b.shape()), " are not [..., ", in1_, "] and [..., ", in2_, "]"));
  s.pop_back();
  const Dim n = product(s);
  // Multiplies a with every matrix of the weight, giving [n, out, in2], then takes the inner product with b.
  const lc::Tensor w = weight.permute({1, 0, 2}).reshape({in1_, out_ * in2_});
  const lc::Tensor left = matmul(a.reshape({n, in1_}), w).reshape({n, out_, in2_});
  const lc::Tensor y = matmul(left, b.reshape({n, in2_, 1})).squeeze(2);
  s.push_back(out_);
  return (o_.bias ? y + bias : y).reshape(s);
}

Init embedding_init(std::int64_t rows, std::optional<std::int64_t> padding_idx) {
  if (padding_idx && (*padding_idx < 0 || *padding_idx >= rows))
    throw Error("Embedding", str_cat("padding_idx is ", *padding_idx, ", and there are ", rows, " rows"));
  return [padding_idx](const init::Extents& s, const init::Source& from) {
    init::Values v = init::normal(s, from);
    if (padding_idx) std::fill_n(v.begin() + *padding_idx * s[1], s[1], 0.0f);
    return v;
  };
}

lc::Tensor rows_of(Operand weight, const lc::Tensor& ids, std::optional<std::int64_t> padding_idx) {
  if (!padding_idx) return rows(weight, Operand(ids, weight.at));
  return lc::embedding(Operand(ids, weight.at), weight, padding_idx);
}

namespace {
// 1 for an id that counts, 0 for padding; undefined if there is no padding.
lc::Tensor counted(const lc::Tensor& ids, std::optional<std::int64_t> padding_idx, DType type) {
  if (!padding_idx) return {};
  return to(logical_not(eq(ids, static_cast<double>(*padding_idx))), type);
}
}  // namespace

lc::Tensor EmbeddingBag::of_rows(Operand ids, const lc::Tensor& weights) const {
  const OpScope scope("EmbeddingBag", ids.at);
  require_visited("EmbeddingBag", weight);
  if (ids->rank() != 2)
    throw Error("EmbeddingBag", str_cat("ids are [bags, n], or [n] with offsets [bags], and not ", str(ids->shape())));
  if (weights.defined() && (o_.mode != BagMode::Sum || weights.shape() != ids->shape()))
    throw Error("EmbeddingBag", str_cat("weights ", str(weights.shape()), " of ids ", str(ids->shape()),
                                        ": they have one shape, and are for the mode Sum"));
  lc::Tensor rows = rows_of(weight, ids, o_.padding_idx);
  const lc::Tensor counts = counted(ids, o_.padding_idx, rows.dtype());
  if (o_.mode == BagMode::Max) {
    if (ids->extent(1) == Dim(0)) return sum(rows, {1});
    if (!counts.defined()) return max(rows, 1).values;
    const lc::Tensor none = eq(counts, 0).unsqueeze(2), empty = eq(sum(counts, {1}, true), 0);
    const lc::Tensor m = max(masked_fill(rows, none, -std::numeric_limits<double>::infinity()), 1).values;
    return masked_fill(m, empty, 0);
  }
  if (weights.defined()) rows = rows * weights.unsqueeze(2);
  if (counts.defined()) rows = rows * counts.unsqueeze(2);
  if (o_.mode == BagMode::Sum) return sum(rows, {1});
  const lc::Tensor n =
      counts.defined() ? sum(counts, {1}, true) : sum(full(ids->graph(), ids->shape(), 1, rows.dtype()), {1}, true);
  return sum(rows, {1}) / lc::maximum(n, full_like(n, 1));
}

lc::Tensor EmbeddingBag::of_offsets(Operand ids, const lc::Tensor& offsets) const {
  const OpScope scope("EmbeddingBag", ids.at);
  require_visited("EmbeddingBag", weight);
  if (ids->rank() != 1 || offsets.rank() != 1)
    throw Error("EmbeddingBag",
                str_cat("ids ", str(ids->shape()), " and offsets ", str(offsets.shape()), " are [n] and [bags]"));
  if (o_.mode == BagMode::Max) throw Error("EmbeddingBag", "the mode Max takes ids [bags, n]");
  // An id belongs to the last bag that begins at its position or earlier.
  const Dim n = ids->extent(0), bags = offsets.extent(0);
  const lc::Tensor place = to(arange(ids->graph(), n), offsets.dtype());
  const lc::Tensor bag = sum(place.unsqueeze(1) >= offsets.unsqueeze(0), {1}) - 1;
  lc::Tensor rows = rows_of(weight, ids, o_.padding_idx);
  lc::Tensor counts = counted(ids, o_.padding_idx, rows.dtype());
  if (counts.defined()) rows = rows * counts.unsqueeze(1);
  const lc::Tensor total = index_add(full(ids->graph(), {bags, width_}, 0, rows.dtype()), 0, bag, rows);
  if (o_.mode == BagMode::Sum) return total;
  if (!counts.defined()) counts = full(ids->graph(), {n}, 1, rows.dtype());
  const lc::Tensor size = index_add(full(ids->graph(), {bags}, 0, rows.dtype()), 0, bag, counts);
  return total / lc::maximum(size, full_like(size, 1)).unsqueeze(1);
}

}  // namespace lc::nn
