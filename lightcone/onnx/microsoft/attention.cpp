// onnxruntime's attentions: with the projection's bias, key padding, caches and rotary embeddings inside.
#include <cmath>

#include "lightcone/onnx/microsoft/microsoft.h"
#include "lightcone/onnx/parts/attend.h"

namespace lc::onnx {
namespace {

double scale_of_heads(const Call& c, const Tensor& q) {
  const double given = c.number("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(fixed(c, q.extent(3), "the head size")));
}
std::int64_t number_of_heads(const Call& c, std::string_view name = "num_heads") {
  const std::int64_t n = c.integer(name);
  if (n < 1 || n > INT32_MAX) c.refuse(str_cat("has ", n, " heads"));
  return n;
}
// Throws Error if the attribute asks for caches that are written in place.
void no_shared_buffer(const Call& c) {
  if (c.flag("past_present_share_buffer")) c.refuse("shares a buffer for past and present, which graphs cannot");
}

// What a mask of keys adds to the scores. The mask is [b] (lengths), [2 b] (ends, then beginnings), [b, t], [b, s, t]
// or [b, 1, most, most].
Tensor bias_of_mask(Call& c, const Tensor& mask, const Attend& a) {
  const Dim b = a.q.extent(0), s = a.q.extent(2), t = a.k.extent(2);
  Tensor keep;
  if (mask.rank() == 1) {
    const Shape all{b, 1, 1, t};
    const auto column = [&](const Tensor& v) { return v.to(DType::I64).reshape({b, 1, 1, 1}).expand(all); };
    const Tensor j = c.graph().index(all, Dim::index(3, t));
    if (mask.extent(0) == b) keep = j < column(mask);
    else if (mask.extent(0) == b * Dim(2))
      keep = logical_and(j < column(narrow(mask, 0, 0, b)), j >= column(narrow(mask, 0, b, b)));
    else c.refuse(str_cat("has a mask ", str(mask.shape()), ", and ", b, " or ", b * Dim(2), " numbers are read"));
  } else {
    Tensor m = ne(mask, 0);
    if (mask.rank() == 2) m = m.unsqueeze(1).unsqueeze(1);
    else if (mask.rank() == 3) m = m.unsqueeze(1);
    else if (mask.rank() == 4) m = narrow(narrow(m, 2, a.offset, s), 3, 0, t);
    else c.refuse(str_cat("has a mask ", str(mask.shape())));
    keep = m;
  }
  const double filter = c.number("mask_filter_value", -10000);
  const Tensor zero = full(keep, keep.shape(), 0, DType::F32);
  return where(keep, zero, full_like(zero, filter));
}
void add_bias(Call& c, Attend& a, const Tensor& more) {
  if (!more.defined()) return;
  if (!a.bias.defined()) {
    a.bias = prim::cast(more, DType::F32);
    return;
  }
  const auto both = broadcast(c, {a.bias, prim::cast(more, DType::F32)});
  a.bias = both[0] + both[1];
}

Values attention_of_layer(Call& c) {
  if (c.flag("do_rotary")) c.refuse("rotates inside; GroupQueryAttention is read with do_rotary");
  c.ignore("rotary_embedding_dim");
  no_shared_buffer(c);
  Tensor qkv = matmul(c.x(0), c.x(1));
  if (const Tensor bias = c.optional(2); bias.defined()) qkv = qkv + bias;
  return joined_attention(c, qkv, c.optional(3), c.optional(4), c.optional(5));
}

// ---- queries, keys and values apart -------------------------------------------------------------------

// [b, s, h, n, d] -> n times [b, h, s, d]
Tensor part_of_packed(const Tensor& t, int k) { return t.select(3, k).permute({0, 2, 1, 3}); }

Values multi_head_attention(Call& c) {
  const std::int64_t heads = number_of_heads(c);
  if (c.has(8) || c.has(9)) c.refuse("shares a buffer for past and present, which graphs cannot");
  Tensor q = c.x(0), k = c.optional(1), v = c.optional(2);
  const Tensor bias = c.optional(3);
  Attend a;
  if (q.rank() == 5) {
    a.q = part_of_packed(q, 0), a.k = part_of_packed(q, 1), a.v = part_of_packed(q, 2);
    if (bias.defined()) c.refuse("has a bias for operands that are packed");
  } else {
    if (!k.defined()) c.refuse("has no keys");
    if (bias.defined()) q = q + narrow(bias, 0, 0, q.extent(2));
    a.q = split_heads(q, heads);
    if (k.rank() == 5) {
      a.k = part_of_packed(k, 0), a.v = part_of_packed(k, 1);
    } else if (k.rank() == 4) {
      a.k = k, a.v = c.x(2);
    } else {
      if (!v.defined()) c.refuse("has no values");
      if (bias.defined()) {
        const Dim w = q.extent(2);
        k = k + narrow(bias, 0, w, w), v = v + narrow(bias, 0, w * Dim(2), v.extent(2));
      }
      a.k = split_heads(k, heads), a.v = split_heads(v, heads);
    }
  }
  if (const Tensor past = c.optional(6); past.defined()) {
    a.offset = past.extent(2);
    a.k = concat({past, a.k}, 2), a.v = concat({c.x(7), a.v}, 2);
  }
  a.causal = c.flag("unidirectional"), a.scale = scale_of_heads(c, a.q);
  if (const Tensor mask = c.optional(4); mask.defined()) a.bias = bias_of_mask(c, mask, a);
  c.ignore("mask_filter_value");
  add_bias(c, a, c.optional(5));
  const Attended r = attend(c, a, c.wants(3));
  return {join_heads(r.y), a.k, a.v, c.wants(3) ? Value(r.probabilities) : Value()};
}
Values decoder_attention(Call& c) {  // the same with its operands in another order
  no_shared_buffer(c);
  c.ignore("output_qk");
  if (c.has(7) || c.has(9)) c.refuse("shares a buffer for past and present, which graphs cannot");
  Values in = c.in;
  in.resize(11);
  c.in = {in[0], in[1], in[2], in[10], in[3], in[4], in[5], in[6]};
  return multi_head_attention(c);
}

// ---- groups of query heads that share keys ------------------------------------------------------------

// Where the new keys of each sample begin in the cache, i64 [b]: its length after this step less the new ones.
Tensor past_lengths(const Tensor& lengths, const Dim& s, const Dim& past) {
  const Tensor total = lengths.to(DType::I64).reshape({lengths.extent(0)}) + 1;
  Graph& g = lengths.graph();
  const Tensor begin = total - g.index({}, s);
  return minimum(maximum(begin, full_like(begin, 0)), g.index({}, past).expand(begin.shape()));
}
// past [b, h, p, d] with new rows [b, h, s, d] behind the first begin[b] ones: [b, h, t, d].
Tensor appended(const Tensor& past, const Tensor& rows, const Tensor& begin, const Dim& t) {
  const Dim b = past.extent(0), p = past.extent(2);
  const Shape at{b, t};
  const Tensor j = past.graph().index(at, Dim::index(1, t)), first = begin.unsqueeze(1).expand(at);
  const Tensor from = where(j < first, j, j - first + past.graph().index({}, p).expand(at));
  const Tensor both = concat({past, rows}, 2);
  const Shape all{b, past.extent(1), t, past.extent(3)};
  return gather(both, 2, from.reshape({b, 1, t, 1}).expand(all));
}
// Query i of a sample is at begin + i: it attends to keys up to itself, within the window.
Tensor frontier(const Tensor& begin, const Attend& a, std::int64_t window) {
  const Dim b = begin.extent(0), s = a.q.extent(2), t = a.k.extent(2);
  const Shape all{b, 1, s, t};
  const Tensor behind = begin.graph().index(all, Dim::index(3, t) - Dim::index(2, s));  // j - i
  const Tensor at = begin.reshape({b, 1, 1, 1}).expand(all);
  const Tensor keep = behind <= at;
  return window < 0 ? keep : logical_and(keep, behind > at - window);
}

// The number of keys after this step.
Dim cache_extent(Call& c, const Dim& past, const Dim& s) {
  const Dim all = past + s;
  const auto total = c.known(6);
  if (!total || total->size() != 1 || (*total)[0] == all || past == Dim(0)) return all;
  if ((past - (*total)[0]).bounds().lo >= 0) return past;  // the cache has room for more
  c.importer.same_extent((*total)[0], all);
  return all;
}

void norm_of_heads(Call& c, Attend& a) {
  const double eps = c.number("qk_norm_epsilon", 1e-6F), q_eps = c.number("q_norm_epsilon", eps),
               k_eps = c.number("k_norm_epsilon", eps);
  if (!c.has(14)) return;
  a.q = rms_norm(a.q, {a.q.extent(3)}, c.x(14), q_eps), a.k = rms_norm(a.k, {a.k.extent(3)}, c.x(15), k_eps);
}

Values group_query_attention(Call& c) {
  const std::int64_t heads = number_of_heads(c), kv = number_of_heads(c, "kv_num_heads");
  if (c.text("k_quant_type", "NONE") != "NONE" || c.text("v_quant_type", "NONE") != "NONE")
    c.refuse("has a quantised cache");
  if (c.flag("sliding_window_cache")) c.refuse("has a cache that drops keys");
  if (c.has(16)) c.refuse("has queries that are padded");
  c.ignore("kv_cache_bit_width");
  Tensor q = c.x(0), k = c.optional(1), v = c.optional(2);
  if (!k.defined()) {
    const Dim d = q.extent(2) / Dim(heads + 2 * kv);
    k = narrow(q, 2, d * Dim(heads), d * Dim(kv)), v = narrow(q, 2, d * Dim(heads + kv), d * Dim(kv));
    q = narrow(q, 2, 0, d * Dim(heads));
  }
  Attend a{.q = split_heads(q, heads), .k = split_heads(k, kv), .v = split_heads(v, kv)};
  norm_of_heads(c, a);
  const Dim b = a.q.extent(0), s = a.q.extent(2);
  const Tensor past_k = c.optional(3), past_v = c.optional(4), lengths = c.x(5);
  const Dim past = past_k.defined() ? past_k.extent(2) : Dim(0), t = cache_extent(c, past, s);
  const bool alone = b == Dim(1) && t == past + s;  // one sample fills the cache
  const Tensor begin = past_lengths(lengths, s, past);
  if (c.flag("do_rotary")) {
    const Shape at{b, s};
    const Tensor i = c.graph().index(at, Dim::index(1, s) + (alone ? past : Dim(0)));
    Tensor positions = alone ? i : i + begin.unsqueeze(1).expand(at);
    if (const Tensor given = c.optional(9); given.defined()) positions = given;
    const std::int64_t width = 2 * fixed(c, c.x(7).extent(1), "the number of angles");
    const bool interleaved = c.flag("rotary_interleaved");
    a.q = rotated(c, a.q, c.x(7), c.x(8), positions, width, interleaved);
    a.k = rotated(c, a.k, c.x(7), c.x(8), positions, width, interleaved);
  } else {
    c.ignore("rotary_interleaved");
  }
  const std::int64_t window = c.integer("local_window_size", -1);
  const bool causal = c.flag("causal", true);
  if (!causal && window >= 0) c.refuse("has a window without a causal mask");
  if (past_k.defined() && !(past == Dim(0))) {
    a.k = alone ? concat({past_k, a.k}, 2) : appended(past_k, a.k, begin, t);
    a.v = alone ? concat({past_v, a.v}, 2) : appended(past_v, a.v, begin, t);
  }
  if (causal && (alone || past == Dim(0))) a.causal = true, a.offset = past, a.window = window;
  else if (causal) a.keep = frontier(begin, a, window);
  else
    a.keep = c.graph().index({b, 1, 1, t}, Dim::index(3, t)) <=
             lengths.to(DType::I64).reshape({b, 1, 1, 1}).expand({b, 1, 1, t});
  a.softcap = c.number("softcap", 0), a.scale = scale_of_heads(c, a.q);
  if (const Tensor bias = c.optional(10); bias.defined())
    a.bias = prim::cast(t == bias.extent(3) ? bias : narrow(bias, 3, 0, t), DType::F32);
  a.sink = c.optional(11);
  if (!a.sink.defined() && c.integer("smooth_softmax", -1) > 0) a.sink = zeros(c.graph(), {heads});
  const std::int64_t shows = c.integer("qk_output", 0);
  const Attended r = attend(c, a, c.wants(3));
  Values out{join_heads(r.y), a.k, a.v};
  if (c.wants(3)) out.push_back(shows == 2 ? r.probabilities : r.masked);
  return out;
}

// ---- rotary embeddings --------------------------------------------------------------------------------

Values rotary_embedding_of_positions(Call& c) {
  if (c.flag("is_packed_batching")) c.refuse("has sequences of different lengths in one tensor");
  if (c.number("scale", 1) != 1) c.refuse("has a scale");
  Tensor x = c.x(0);
  const bool packed = x.rank() == 3;
  std::int64_t heads = c.integer("num_heads", 0);
  const std::int64_t width = c.integer("rotary_embedding_dim", 0);
  if (packed) {
    const Dim head = heads > 0 ? x.extent(2) / Dim(heads) : c.x(2).extent(1) * Dim(2);
    x = split_heads(x, x.extent(2) / head);
  }
  Tensor at = c.x(1).to(DType::I64);
  const Shape all{x.extent(0), x.extent(2)};
  if (at.rank() < 2) at = c.graph().index(all, Dim::index(1, x.extent(2))) + at.reshape({1, 1}).expand(all);
  const Tensor y = rotated(c, x, c.x(2), c.x(3), at, width, c.flag("interleaved"));
  return {packed ? join_heads(y) : y};
}

}  // namespace

Values joined_attention(Call& c, const Tensor& qkv, const Tensor& mask, const Tensor& past, const Tensor& bias) {
  const std::int64_t heads = number_of_heads(c);
  const std::int64_t all = fixed(c, qkv.extent(2), "the number of columns of the projection");
  const Integers sizes = c.integers("qkv_hidden_sizes", {all / 3, all / 3, all / 3});
  if (sizes.size() != 3 || !(Dim(sizes[0]) + sizes[1] + sizes[2] == Dim(all)))
    c.refuse("has qkv_hidden_sizes that do not fit");
  Attend a{.q = split_heads(narrow(qkv, 2, 0, sizes[0]), heads),
           .k = split_heads(narrow(qkv, 2, sizes[0], sizes[1]), heads),
           .v = split_heads(narrow(qkv, 2, sizes[0] + sizes[1], sizes[2]), heads)};
  if (past.defined()) {
    a.offset = past.extent(3);
    a.k = concat({past.select(0, 0), a.k}, 2), a.v = concat({past.select(0, 1), a.v}, 2);
  }
  a.causal = c.flag("unidirectional"), a.scale = scale_of_heads(c, a.q);
  if (mask.defined()) a.bias = bias_of_mask(c, mask, a);
  c.ignore("mask_filter_value");
  add_bias(c, a, bias);
  return {join_heads(attend(c, a).y), c.wants(1) ? Value(stack({a.k, a.v}, 0)) : Value()};
}

void add_microsoft_attention(Operators& t) {
  const Operator rows[] = {
      {kMicrosoft, "Attention", 1, attention_of_layer, "matmul, scaled_dot_product_attention"},
      {kMicrosoft, "DecoderMaskedMultiHeadAttention", 1, decoder_attention, "scaled_dot_product_attention"},
      {kMicrosoft, "GroupQueryAttention", 1, group_query_attention, "rope, scaled_dot_product_attention with a cache"},
      {kMicrosoft, "MultiHeadAttention", 1, multi_head_attention, "scaled_dot_product_attention"},
      {kMicrosoft, "RotaryEmbedding", 1, rotary_embedding_of_positions, "rope"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
