#include "lightcone/onnx/parts/attend.h"

#include <limits>

namespace lc::onnx {
namespace {

constexpr double kMaskedScore = -std::numeric_limits<double>::infinity();

// One mask for scaled_dot_product_attention() and the rows that no key is left for.
struct AttendMask {
  Tensor all = {};    // bool or float; undefined: none
  Tensor empty = {};  // bool [.., s, 1]; undefined: there are no such rows
};
AttendMask attend_mask(Call& c, const Attend& a, bool leave_causal) {
  Tensor keep = a.keep;
  const auto also = [&](const Tensor& more) {
    if (!keep.defined()) keep = more;
    else {
      const auto both = broadcast(c, {keep, more});
      keep = logical_and(both[0], both[1]);
    }
  };
  if (a.causal && !leave_causal) also(causal_mask(c.graph(), a.q.extent(2), a.k.extent(2), a.offset, a.window));
  AttendMask m;
  if (!a.bias.defined()) {
    m.all = keep;
    if (a.zero_rows && a.keep.defined()) m.empty = logical_not(any(keep, {-1}, true));
    return m;
  }
  m.all = a.bias;
  if (keep.defined()) {
    const auto both = broadcast(c, {keep, a.bias});
    m.all = where(both[0], both[1], full_like(both[1], kMaskedScore));
  }
  if (a.zero_rows) m.empty = isneginf(amax(m.all, {-1}, true));
  return m;
}

Tensor keys_for_heads(Call& c, const Tensor& k, const Dim& heads) {
  if (k.extent(1) == heads) return k;
  const std::int64_t group = fixed(c, heads / k.extent(1), "the number of query heads of a key head");
  if (!(k.extent(1) * Dim(group) == heads)) c.refuse(str_cat(k.extent(1), " key heads do not divide ", heads));
  return repeat_interleave(k, narrow_int(c, group, "the number of query heads of a key head"), 1);
}

// Weights of a softmax over the keys and one more score, [h], whose weight is dropped.
Tensor softmax_with_sink(Call& c, const Tensor& scores, const Tensor& sink) {
  const Tensor extra = expand_to(c, sink.to(scores.dtype()).reshape({1, sink.extent(0), 1, 1}),
                                 {scores.extent(0), scores.extent(1), scores.extent(2), 1});
  return narrow(softmax(concat({scores, extra}, 3), 3), 3, 0, scores.extent(3));
}

Attended attend_in_steps(Call& c, const Attend& a, const AttendMask& m) {
  const DType type = a.q.dtype(), wide = type == DType::F64 || a.double_softmax ? DType::F64 : DType::F32;
  const auto in_f32 = [](const Tensor& t) { return t.dtype() == DType::F64 ? t : prim::cast(t, DType::F32); };
  const Tensor keys = keys_for_heads(c, in_f32(a.k), a.q.extent(1)), values = keys_for_heads(c, a.v, a.q.extent(1));
  Attended r;
  r.product = r.capped = matmul(in_f32(a.q), keys.transpose(-1, -2)) * a.scale;
  if (a.softcap > 0) r.capped = tanh(r.product / a.softcap) * a.softcap;
  r.masked = r.capped;
  if (m.all.defined()) {
    const Tensor all = expand_to(c, m.all, r.masked.shape());
    r.masked = all.dtype() == DType::Bool ? where(all, r.masked, full_like(r.masked, kMaskedScore))
                                          : r.masked + prim::cast(all, r.masked.dtype());
  }
  const Tensor scores = prim::cast(r.masked, wide);
  Tensor p = a.sink.defined() ? softmax_with_sink(c, scores, a.sink) : softmax(scores, 3);
  if (m.empty.defined()) p = where(expand_to(c, m.empty, p.shape()), zeros_like(p), p);
  r.probabilities = prim::cast(p, type);
  r.y = matmul(r.probabilities, values);
  for (Tensor* t : {&r.product, &r.capped, &r.masked}) *t = prim::cast(*t, type);
  return r;
}

}  // namespace

Tensor causal_mask(Graph& g, const Dim& s, const Dim& t, const Dim& offset, std::int64_t window) {
  const Dim i = Dim::index(0, s) + offset, j = Dim::index(1, t);
  Dim keep = less(j, i + Dim(1));
  if (window >= 0) keep = keep * less(i, j + Dim(window));
  return g.index({s, t}, keep, DType::Bool);
}

Attended attend(Call& c, const Attend& a, bool scores) {
  const bool plain = !scores && a.softcap <= 0 && !a.double_softmax && !a.sink.defined();
  const bool top_left = plain && a.causal && a.window < 0 && a.offset == Dim(0) && !(a.zero_rows && a.keep.defined());
  const AttendMask m = attend_mask(c, a, top_left);
  if (!plain) return attend_in_steps(c, a, m);
  AttentionOptions o;
  if (m.all.defined()) {
    o.attn_mask = m.all;
    if (o.attn_mask.dtype() != DType::Bool && a.q.dtype() != DType::F64)
      o.attn_mask = prim::cast(o.attn_mask, DType::F32);
  }
  o.is_causal = top_left;
  o.scale = a.scale;
  Tensor y = scaled_dot_product_attention(a.q, a.k, a.v, o);
  if (m.empty.defined()) y = where(expand_to(c, m.empty, y.shape()), zeros_like(y), y);
  return {.y = y};
}

Tensor split_heads(const Tensor& x, const Dim& heads) {
  return x.reshape({x.extent(0), x.extent(1), heads, x.extent(2) / heads}).permute({0, 2, 1, 3});
}
Tensor join_heads(const Tensor& x) {
  return x.permute({0, 2, 1, 3}).reshape({x.extent(0), x.extent(2), x.extent(1) * x.extent(3)});
}

Tensor rotated(Call& c, const Tensor& x, Tensor cos, Tensor sin, const Tensor& positions, std::int64_t width,
               bool interleaved) {
  if (positions.defined()) cos = embedding(positions, cos), sin = embedding(positions, sin);
  if (cos.rank() == 3) cos = cos.unsqueeze(1), sin = sin.unsqueeze(1);  // the same for all heads
  const Dim whole = x.extent(3);
  if (width == 0 || whole == Dim(width)) return rope(x, cos, sin, interleaved);
  if (width < 0 || (whole.constant() && width > *whole.constant()))
    c.refuse(str_cat("rotates ", width, " of ", whole, " elements"));
  return concat({rope(narrow(x, 3, 0, width), cos, sin, interleaved), narrow(x, 3, width, whole - Dim(width))}, 3);
}

}  // namespace lc::onnx
