// Attention and rotary embeddings.
#include <cmath>

#include "lightcone/onnx/parts/attend.h"

namespace lc::onnx {
namespace {

double attention_scale(const Call& c, const Tensor& q) {
  if (c.has_attribute("scale")) return c.number("scale", 0);
  return 1 / std::sqrt(static_cast<double>(fixed(c, q.extent(3), "the head size")));
}

// Adds false, or minus infinity, behind a mask that is shorter than the keys.
Tensor lengthened_mask(const Tensor& mask, const Dim& keys) {
  const auto has = mask.extent(-1).constant(), wants = keys.constant();
  if (!has || !wants || *has >= *wants) return mask;
  const Dim more(*wants - *has);
  const int last = mask.rank() - 1;
  const Tensor inside = full(mask, mask.shape(), 1, DType::Bool).pad(last, 0, more);
  const Tensor longer = mask.pad(last, 0, more);
  if (mask.dtype() == DType::Bool) return longer;
  return where(inside, longer, full_like(longer, -std::numeric_limits<double>::infinity()));
}

// nonpad_kv_seqlen [b]: keys of each sample that are valid, with the frontier of queries that end at the last one.
Tensor valid_keys(const Tensor& lengths, const Attend& a) {
  const Dim b = lengths.extent(0), s = a.q.extent(2), t = a.k.extent(2);
  const Shape shape{b, 1, a.causal ? s : Dim(1), t};
  const Tensor n = lengths.to(DType::I64).reshape({b, 1, 1, 1}).expand(shape);
  Graph& g = lengths.graph();
  const Tensor valid = g.index(shape, Dim::index(3, t)) < n;
  if (!a.causal) return valid;
  const Tensor behind = g.index(shape, Dim::index(3, t) - Dim::index(2, s) + s);  // j - i + s <= n
  return logical_and(valid, behind <= n);
}

Values attention_(Call& c) {
  Attend a{.q = c.x(0), .k = c.x(1), .v = c.x(2), .zero_rows = true};
  const bool packed = a.q.rank() == 3;
  if (packed) {
    const std::int64_t heads = c.integer("q_num_heads"), kv = c.integer("kv_num_heads");
    if (heads < 1 || kv < 1) c.refuse("has no heads");
    a.q = split_heads(a.q, heads), a.k = split_heads(a.k, kv), a.v = split_heads(a.v, kv);
  } else {
    c.ignore("q_num_heads"), c.ignore("kv_num_heads");
  }
  if (a.q.rank() != 4 || a.k.rank() != 4 || a.v.rank() != 4) c.refuse("needs operands with 3 or 4 axes");
  const Tensor past_k = c.optional(4), past_v = c.optional(5), lengths = c.optional(6);
  if (past_k.defined() != past_v.defined()) c.refuse("has past keys without values, or the other way round");
  if (past_k.defined()) {
    a.offset = past_k.extent(2);
    a.k = concat({past_k, a.k}, 2), a.v = concat({past_v, a.v}, 2);
  }
  a.scale = attention_scale(c, a.q), a.softcap = c.number("softcap", 0), a.causal = c.flag("is_causal");
  if (const Tensor mask = c.optional(3); mask.defined()) {
    const Tensor m = c.opset >= 24 ? lengthened_mask(mask, a.k.extent(2)) : mask;
    if (m.dtype() == DType::Bool) a.keep = m;
    else a.bias = is_float(m.dtype()) ? m : m.to(a.q.dtype());
  }
  if (lengths.defined()) {
    const Tensor valid = valid_keys(lengths, a);
    if (!past_k.defined()) a.causal = false;  // it is in `valid`
    if (a.keep.defined()) {
      const auto both = broadcast(c, {a.keep, valid});
      a.keep = logical_and(both[0], both[1]);
    } else {
      a.keep = valid;
    }
  }
  const auto precision = c.element_type("softmax_precision", ElementType::Float);
  a.double_softmax = precision == ElementType::Double && a.q.dtype() != DType::F64;
  const std::int64_t mode = c.integer("qk_matmul_output_mode", 0);
  const Attended r = attend(c, a, c.wants(3));
  Values out{packed ? join_heads(r.y) : r.y, a.k, a.v};
  if (c.wants(3)) {
    if (mode < 0 || mode > 3) c.refuse("has a qk_matmul_output_mode that is not 0 to 3");
    const Tensor by_mode[] = {r.product, r.capped, r.masked, r.probabilities};
    out.push_back(by_mode[mode]);
  }
  return out;
}

// Scores and probabilities go through graphs of the model.
Values flex_attention(Call& c) {
  const Attend a{.q = c.x(0), .k = c.x(1), .v = c.x(2)};
  if (a.q.rank() != 4 || a.k.rank() != 4 || a.v.rank() != 4) c.refuse("needs operands with 4 axes");
  const double scale = attention_scale(c, a.q);
  const bool scores_change = c.has_attribute("score_mod"), weights_change = c.has_attribute("prob_mod");
  const DType type = a.q.dtype();
  const DType in = c.dtype("softmax_precision", type == DType::F64 ? ElementType::Double : ElementType::Float);
  if (!scores_change && !weights_change) {
    AttentionOptions o;
    o.scale = scale;
    return {scaled_dot_product_attention(a.q, a.k, a.v, o)};
  }
  const auto heads = [&](const Tensor& t) {
    const std::int64_t group = fixed(c, a.q.extent(1) / t.extent(1), "the number of query heads of a key head");
    return group == 1 ? t : repeat_interleave(t, narrow_int(c, group, "the number of query heads of a key head"), 1);
  };
  const auto modified = [&](const char* name, const Tensor& t) {
    const Value v(t);
    const Values r = c.importer.subgraph(c.graph(name), {&v, 1});
    if (r.size() != 1 || !r[0].tensor.defined()) c.refuse(str_cat("its graph ", name, " has not one tensor"));
    return expand_to(c, r[0].tensor, t.shape());
  };
  Tensor scores = (matmul(a.q.to(in), heads(a.k).to(in).transpose(-1, -2)) * scale).to(in);
  if (scores_change) scores = modified("score_mod", scores);
  Tensor weights = softmax(scores, 3);
  if (weights_change) weights = modified("prob_mod", weights);
  return {matmul(weights.to(type), heads(a.v)).to(type)};
}

Values rotary_embedding(Call& c) {
  Tensor x = c.x(0);
  const bool packed = x.rank() == 3;
  const std::int64_t heads = c.integer("num_heads", 0), width = c.integer("rotary_embedding_dim", 0);
  if (packed) {
    if (heads < 1) c.refuse("needs num_heads for an operand with 3 axes");
    x = split_heads(x, heads);
  }
  if (x.rank() != 4) c.refuse("needs an operand with 3 or 4 axes");
  const Tensor y = rotated(c, x, c.x(1), c.x(2), c.optional(3), width, c.flag("interleaved"));
  return {packed ? join_heads(y) : y};
}

}  // namespace

void add_attention(Operators& t) {
  const Operator rows[] = {
      {"", "Attention", 23, attention_, "scaled_dot_product_attention; in steps if it caps or gives out scores"},
      {"", "RotaryEmbedding", 23, rotary_embedding, "rope"},
      {kPreview, "FlexAttention", 1, flex_attention, "matmul, softmax and the model's graphs between them"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
