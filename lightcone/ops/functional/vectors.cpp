// Distances, bags of embeddings and multi-head attention.
#include "lightcone/composites/composites.h"

#include <cmath>
#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/ops/internal.h"
#include "lightcone/ops/linalg/linalg.h"
#include "lightcone/ops/special/special.h"

namespace lc {
using namespace detail;

Tensor pairwise_distance(Operand a, Operand b, double p, double eps, bool keepdim) {
  const OpScope scope("pairwise_distance", a.at);
  LC_RETURN_IF_EITHER_HALF(a, b, pairwise_distance(a, b, p, eps, keepdim));
  return vector_norm((a - b) + eps, p, {-1}, keepdim);
}

Tensor gumbel_softmax(Random& random, Operand logits, double tau, bool hard, int axis) {
  const OpScope scope("gumbel_softmax", logits.at);
  LC_RETURN_IF_HALF(logits, gumbel_softmax(random, logits, tau, hard, axis));
  if (!is_float(logits->dtype()))
    throw Error("gumbel_softmax", str_cat("needs a floating type, not ", name(logits->dtype())));
  if (!(tau > 0)) throw Error("gumbel_softmax", str_cat("tau is ", tau));
  if (is_number(logits, axis)) return number_of(gumbel_softmax(random, row_of(logits), tau, hard, 0));
  axis = wrap_axis(axis, logits->rank(), logits->shape(), "gumbel_softmax");
  // offset by half a step: uniform() has 2^24 values from 0, and the logarithm needs positive numbers
  const Tensor uniform = add(random.uniform(logits->shape()), 0x1p-25);
  const Tensor noise = prim::cast(neg(log(neg(log(uniform)))), logits->dtype());
  const Tensor soft = softmax((logits + noise) / tau, axis);
  if (!hard) return soft;
  const Tensor best = argmax(soft, axis, true).expand(soft.shape());
  const Tensor place = soft.graph().index(soft.shape(), Dim::index(axis, soft.extent(axis)));
  return with_vjp(prim::cast(prim::equal(place, best), soft.dtype()), {soft},
                  [](const VjpCall& c) -> std::vector<Tensor> { return {c.g()}; });
}

// ---- bags ---------------------------------------------------------------------------------------
namespace {

enum class Bag { Sum, Mean, Max };
Bag bag_of(std::string_view mode) {
  if (mode == "sum") return Bag::Sum;
  if (mode == "mean") return Bag::Mean;
  if (mode == "max") return Bag::Max;
  throw Error("embedding_bag", str_cat("mode is \"sum\", \"mean\" or \"max\", not \"", mode, "\""));
}
void check_ids(const Operand& ids, int rank, const Operand& weight) {
  if (is_float(ids->dtype())) throw Error("embedding_bag", str_cat("ids are integers, not ", name(ids->dtype())));
  if (ids->rank() != rank)
    throw Error("embedding_bag", rank == 2 ? "ids are [b, n], or [n] with offsets; not " + str(ids->shape())
                                           : "ids that offsets cut are [n], not " + str(ids->shape()));
  if (weight->rank() != 2) throw Error("embedding_bag", "the weight has rank 2, not " + str(weight->shape()));
}
// Reduces embeddings [n, d] to `count` bags; bag [n] is the bag of each row, ignored if out of range.
Tensor bags(Bag how, const Tensor& rows, const Tensor& bag, const Dim& count) {
  const Shape to{count, rows.extent(1)};
  const Tensor none = full(rows.graph(), to, 0, rows.dtype()), at = bag.unsqueeze(1).expand(rows.shape());
  if (how == Bag::Max) {
    const Tensor apart = prim::where(prim::less_than(at, full_like(at, 0)), at.graph().index(at.shape(), count), at);
    return scatter_reduce(none, 0, apart, rows, "amax", false);
  }
  const Tensor sums = prim::scatter_add(none, at, rows, 0);
  if (how == Bag::Sum) return sums;
  const Tensor number = prim::scatter_add(full(rows.graph(), {count}, 0, DType::I64), bag, full_like(bag, 1), 0);
  const Tensor by = prim::cast(prim::maximum(number, full_like(number, 1)), rows.dtype());
  return prim::div(sums, by.unsqueeze(1).expand(to));
}
// Reduces the embeddings of ids [n], given their bags; `scale` multiplies each embedding.
Tensor bags_of_ids(const Operand& ids, const Operand& weight, Tensor bag, const Dim& count,
                   const EmbeddingBagOptions& o, const Tensor& scale) {
  Tensor rows = embedding(ids, weight);
  const DType type = rows.dtype();
  if (is_narrow(type)) rows = prim::cast(rows, DType::F32);
  if (scale.defined()) rows = prim::mul(rows, prim::cast(scale, rows.dtype()).unsqueeze(1).expand(rows.shape()));
  if (o.padding_idx >= 0) {
    const Tensor i = prim::cast(ids, DType::I64);
    bag = prim::where(prim::equal(i, full_like(i, static_cast<double>(o.padding_idx))), full_like(bag, -1), bag);
  }
  return prim::cast(bags(bag_of(o.mode), rows, bag, count), type);
}
struct CutIds {
  Tensor bag;
  Dim count;
};
CutIds cut(const Operand& ids, const Operand& offsets, bool include_last) {
  if (offsets->rank() != 1 || is_float(offsets->dtype()))
    throw Error("embedding_bag",
                str_cat("offsets are integers [b], not ", name(offsets->dtype()), " ", str(offsets->shape())));
  const Dim n = ids->extent(0), count = offsets->extent(0) - (include_last ? 1 : 0);
  const Tensor place = ids->graph().index({n}, Dim::index(0, n));
  const Tensor starts = prim::cast(offsets, DType::I64).slice(0, 0, count);
  return {add(searchsorted(starts, place, true), -1), count};
}
Tensor rows_in_turn(const Operand& ids) {
  const Dim b = ids->extent(0), n = ids->extent(1);
  return ids->graph().index({b, n}, Dim::index(0, b)).reshape({b * n});
}
Tensor one_row(const Tensor& t) { return t.reshape({product(t.shape())}); }

}  // namespace

Tensor embedding_bag(Operand ids, Operand weight, const EmbeddingBagOptions& o) {
  const OpScope scope("embedding_bag", ids.at);
  check_ids(ids, 2, weight);
  return bags_of_ids(one_row(ids), weight, rows_in_turn(ids), ids->extent(0), o, Tensor());
}
Tensor embedding_bag(Operand ids, Operand weight, Operand offsets, const EmbeddingBagOptions& o) {
  const OpScope scope("embedding_bag", ids.at);
  check_ids(ids, 1, weight);
  const CutIds c = cut(ids, offsets, o.include_last_offset);
  return bags_of_ids(ids, weight, c.bag, c.count, o, Tensor());
}
Tensor embedding_bag_weighted(Operand ids, Operand weight, Operand per_sample_weights) {
  const OpScope scope("embedding_bag", ids.at);
  check_ids(ids, 2, weight);
  if (per_sample_weights->shape() != ids->shape())
    throw Error("embedding_bag", str_cat("weights ", str(per_sample_weights->shape()), " for ids ", str(ids->shape())));
  return bags_of_ids(one_row(ids), weight, rows_in_turn(ids), ids->extent(0), {.mode = "sum"},
                     one_row(per_sample_weights));
}
Tensor embedding_bag_weighted(Operand ids, Operand weight, Operand offsets, Operand per_sample_weights) {
  const OpScope scope("embedding_bag", ids.at);
  check_ids(ids, 1, weight);
  if (per_sample_weights->shape() != ids->shape())
    throw Error("embedding_bag", str_cat("weights ", str(per_sample_weights->shape()), " for ids ", str(ids->shape())));
  const CutIds c = cut(ids, offsets, false);
  return bags_of_ids(ids, weight, c.bag, c.count, {.mode = "sum"}, per_sample_weights);
}

// ---- attention ----------------------------------------------------------------------------------
namespace {

Tensor projected(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return bias.defined() ? linear(x, weight, bias) : linear(x, weight);
}
// Takes the `part`-th third of the joint query, key and value projection.
Tensor third(const Tensor& t, int part, const Dim& width) {
  return t.slice(0, width * Dim(part), width * Dim(part + 1));
}

// Converts a mask to numbers to add: -infinity where a bool mask is true.
Tensor added(const Tensor& mask, DType type) {
  if (is_float(mask.dtype())) return prim::cast(mask, type);
  const Tensor zero = full(mask.graph(), mask.shape(), 0, type);
  return masked_fill(zero, mask, -kInf);
}

// Extends a mask for a key appended at the end, to which every query attends.
Tensor one_more(const Tensor& mask) { return mask.defined() ? mask.pad(mask.rank() - 1, 0, 1) : mask; }

Attended batched(const Tensor& query, const Tensor& key, const Tensor& value, const MultiHeadAttentionArguments& o) {
  const char* op = "multi_head_attention_forward";
  const Dim l = query.extent(0), n = query.extent(1), width = query.extent(2), heads = o.num_heads;
  const Dim d = width / heads;
  const auto head_size = d.constant();
  if (o.num_heads < 1 || !(d * heads == width) || !head_size)
    throw Error(op, str_cat(o.num_heads, " heads do not divide a width of ", width));
  const Tensor own[3] = {o.q_proj_weight, o.k_proj_weight, o.v_proj_weight}, given[3] = {query, key, value};
  Tensor t[3];
  for (int k = 0; k < 3; ++k) {
    if (!own[k].defined() && !o.in_proj_weight.defined())
      throw Error(op, "needs in_proj_weight, or those of q, k and v");
    const Tensor weight = own[k].defined() ? own[k] : third(o.in_proj_weight, k, width);
    t[k] = projected(given[k], weight, o.in_proj_bias.defined() ? third(o.in_proj_bias, k, width) : Tensor());
  }
  Tensor mask = o.attn_mask, padding = o.key_padding_mask;
  if (o.bias_k.defined() != o.bias_v.defined()) throw Error(op, "bias_k and bias_v come together");
  if (o.bias_k.defined()) {
    t[1] = concat({t[1], o.bias_k.expand({1, n, width})}, 0), t[2] = concat({t[2], o.bias_v.expand({1, n, width})}, 0);
    mask = one_more(mask), padding = one_more(padding);
  }
  if (o.add_zero_attn) {
    t[1] = t[1].pad(0, 0, 1), t[2] = t[2].pad(0, 0, 1);
    mask = one_more(mask), padding = one_more(padding);
  }
  const Dim s = t[1].extent(0);
  for (int k = 0; k < 3; ++k) t[k] = t[k].reshape({k ? s : l, n, heads, d}).permute({1, 2, 0, 3});  // [n, heads, ., d]
  Tensor scores = matmul(t[0], t[1].transpose(2, 3)) * (1 / std::sqrt(static_cast<double>(*head_size)));
  const DType type = scores.dtype();
  if (mask.defined()) {
    const Tensor m = added(mask, type);
    scores = scores + (m.rank() == 3 ? m.reshape({n, heads, l, s}) : m);
  }
  if (o.is_causal) {
    const Dim i = Dim::index(2, l), j = Dim::index(3, s);
    scores = prim::where(scores.graph().index(scores.shape(), less(j, i + 1), DType::Bool), scores,
                         full_like(scores, -kInf));
  }
  if (padding.defined()) scores = scores + added(padding, type).reshape({n, 1, 1, s});
  Tensor weights = softmax(scores, -1);
  if (o.dropout_p > 0) {
    if (!o.random) throw Error(op, "dropout_p needs a source of random numbers, `random`");
    weights = o.random->dropout(weights, o.dropout_p);
  }
  const Tensor y = matmul(weights, t[2]).permute({2, 0, 1, 3}).reshape({l, n, width});
  if (!o.out_proj_weight.defined()) throw Error(op, "needs out_proj_weight");
  return {projected(y, o.out_proj_weight, o.out_proj_bias), o.average_attn_weights ? mean(weights, {1}) : weights};
}

}  // namespace

Attended multi_head_attention_forward(Operand query, Operand key, Operand value, const MultiHeadAttentionArguments& o) {
  const char* op = "multi_head_attention_forward";
  const OpScope scope(op, query.at);
  const int r = query->rank();
  if ((r != 2 && r != 3) || key->rank() != r || value->rank() != r)
    throw Error(op, str_cat("query ", str(query->shape()), ", key ", str(key->shape()), " and value ",
                            str(value->shape()), " are [l, n, e] and [s, n, e], or without n"));
  if (r == 3) return batched(query, key, value, o);
  MultiHeadAttentionArguments one = o;
  if (o.key_padding_mask.defined()) one.key_padding_mask = o.key_padding_mask.unsqueeze(0);
  const Attended a = batched(query->unsqueeze(1), key->unsqueeze(1), value->unsqueeze(1), one);
  return {a.output.squeeze(1), a.weights.squeeze(0)};
}

}  // namespace lc
