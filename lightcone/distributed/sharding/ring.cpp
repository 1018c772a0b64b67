#include "lightcone/distributed/sharding/ring.h"

#include <cmath>

#include "lightcone/base/error.h"
#include "lightcone/composites/composites.h"
#include "lightcone/composites/layers.h"
#include "lightcone/passes/barrier.h"

namespace lc::distributed {
namespace {

using namespace definitions;
using Operation = Collective::Operation;

constexpr int kHeads = -3, kRows = -2;  // axes from the end

int ranks_of(const TextAttention& a) { return a.ranks.mesh().extent(a.axes); }
std::vector<std::string> names_of(const TextAttention& a) {
  std::vector<std::string> names;
  for (const int axis : a.axes) names.push_back(a.ranks.mesh().axes()[static_cast<std::size_t>(axis)].name);
  return names;
}

Tensor wide(const Tensor& t) { return size_of(t.dtype()) < size_of(DType::F32) ? cast(t, DType::F32) : t; }
Tensor column(const Tensor& rows, const Shape& to) { return rows.unsqueeze(rows.rank()).expand(to); }

// The queries of one rank and the keys that come round. All ranks' graphs have the same operations, in the same order,
// for they exchange in that order: the rank's place is a number that no compiler sees, and blocks of keys that a causal
// mask hides are computed, too. The last rank sees all of them, and the others would wait for it.
class Ring {
 public:
  Ring(const TextAttention& a, const std::vector<Tensor>& in, const Tensor* mask)
      : a_(a), q_(in[0]), k_(in[1]), v_(in[2]), mask_(mask), ranks_(ranks_of(a)), place_(a.place) {}

  struct Rows {  // by query
    Tensor max, sum, out;
  };
  Rows forward() const;
  std::vector<Tensor> backward(const Tensor& g, Tensor* scores) const;

 private:
  int block(int turn) const { return ((place_ + turn) % ranks_ + ranks_) % ranks_; }  // the rank whose keys are here
  Dim first_key(int turn) const { return k_.extent(-2) * Dim(block(turn)); }
  Tensor number(const Dim& n) const { return q_.graph().index({1}, n); }
  Tensor travel(const Tensor& t, int by, const Tensor& after) const;
  Tensor scores(int turn, const Tensor& keys) const;
  Tensor is_before(int turn, const Shape& shape) const;
  void add_block(Rows& r, int turn, const Tensor& k, const Tensor& v) const;
  struct Parts {
    Tensor q, k, v, scores;
  };
  Parts gradients(const Rows& r, const Tensor& g, const Tensor& mean, int turn, const Tensor& k, const Tensor& v) const;

  TextAttention a_;
  Tensor q_, k_, v_;
  const Tensor* mask_;
  int ranks_ = 1, place_ = 0;
};

// Once `after` is there: a rank has the keys that it uses and those that come, and no more.
Tensor Ring::travel(const Tensor& t, int by, const Tensor& after) const {
  std::string axes;
  for (const std::string& name : names_of(a_)) axes += (axes.empty() ? "" : "+") + name;
  const Tensor sent = after.defined() ? a_.ranks.ordered(t, after) : t;
  return call(a_.ranks.composite(Operation::Permute), {sent},
              {{"axes", axes}, {"by", std::int64_t{by}}, {"ring", std::int64_t{1}}})[0];
}

// Whether a key comes before or at a query in the whole text.
Tensor Ring::is_before(int turn, const Shape& shape) const {
  Graph& g = q_.graph();
  const Dim queries = shape[shape.size() - 2], keys = shape.back();
  const Tensor place = behind_barrier(contiguous(number(Dim(place_)))), ranks = number(Dim(ranks_));
  const Tensor owner = mod(add(place, number(Dim(((turn % ranks_) + ranks_) % ranks_))), ranks);
  const Tensor first_key = mul(owner, number(keys)), first_query = mul(place, number(queries));
  const Shape rows{queries, Dim(1)}, columns{Dim(1), keys};
  const Tensor i = add(g.index(rows, Dim::index(0, queries) + 1), expand_to(first_query, rows)),
               j = add(g.index(columns, Dim::index(1, keys)), expand_to(first_key, columns));
  const Shape all{queries, keys};
  return expand_to(less_than(j.expand(all), i.expand(all)), shape);
}

// The masked scores of a block of keys.
Tensor Ring::scores(int turn, const Tensor& keys) const {
  Tensor s = wide(matmul(q_, keys.transpose(-1, -2)));
  s = mul(s, like(s, a_.attributes.real("scale")));
  if (a_.attributes.integer("causal") != 0) s = where(is_before(turn, s.shape()), s, like(s, -kInf));
  if (!mask_) return s;
  const bool each = !(mask_->extent(-1) == Dim(1));
  const Tensor mask = each ? mask_->slice(-1, first_key(turn), first_key(turn) + k_.extent(-2)) : *mask_;
  if (is_float(mask.dtype())) return add(s, expand_to(cast(mask, s.dtype()), s.shape()));
  return where(expand_to(mask, s.shape()), s, like(s, -kInf));
}

// A row without a key so far has the maximum -inf, from which nothing is subtracted.
Tensor shifted(const Tensor& s, const Tensor& max) {
  const Tensor from = where(equal(max, like(max, -kInf)), like(max, 0), max);
  return exp(add(s, negate(s.rank() == max.rank() ? from : column(from, s.shape()))));
}

void Ring::add_block(Rows& r, int turn, const Tensor& k, const Tensor& v) const {
  const Tensor s = scores(turn, for_heads(k, q_));
  const int last = s.rank() - 1;
  const Tensor most = max_reduce(s, last), max = r.max.defined() ? maximum(r.max, most) : most;
  const Tensor p = shifted(s, max), sum = sum_reduce(p, last), out = wide(matmul(cast(p, v.dtype()), for_heads(v, q_)));
  if (!r.max.defined()) {
    r = {max, sum, out};
    return;
  }
  const Tensor before = shifted(r.max, max);
  r = {max, add(mul(r.sum, before), sum), add(mul(r.out, column(before, out.shape())), out)};
}

// Keys and values come from the rank before this one; the next ones are under way while a block is computed.
Ring::Rows Ring::forward() const {
  Rows r;
  Tensor k = k_, v = v_;
  for (int turn = 0; turn < ranks_; ++turn) {
    const Tensor here = k, values = v;
    if (turn + 1 < ranks_) k = travel(k, 1, r.max), v = travel(v, 1, r.max);
    add_block(r, -turn, here, values);
  }
  r.out = mul(r.out, column(recip(r.sum), r.out.shape()));
  return r;
}

Ring::Parts Ring::gradients(const Rows& r, const Tensor& g, const Tensor& mean, int turn, const Tensor& k,
                            const Tensor& v) const {
  const Tensor keys = for_heads(k, q_), values = for_heads(v, q_), s = scores(turn, keys);
  const Tensor p = mul(shifted(s, r.max), column(recip(r.sum), s.shape()));
  const Tensor slope = wide(matmul(g, values.transpose(-1, -2)));
  const Tensor d = mul(p, add(slope, negate(column(mean, s.shape()))));
  const Tensor scaled = cast(mul(d, like(d, a_.attributes.real("scale"))), q_.dtype());
  return {wide(matmul(scaled, keys)), wide(for_keys(matmul(scaled.transpose(-1, -2), q_), k)),
          wide(for_keys(matmul(cast(p, v.dtype()).transpose(-1, -2), g), v)), d};
}

// Keys and values come from the rank behind, and so do the sums of their cotangents: those of a block have met all
// ranks when they are at home. `scores`, if it is given, becomes the cotangent of the scores with all keys.
std::vector<Tensor> Ring::backward(const Tensor& g, Tensor* scores) const {
  const Rows r = forward();
  const Tensor mean = sum_reduce(mul(wide(g), r.out), g.rank() - 1);
  Tensor k = k_, v = v_, dq, dk, dv;
  const auto visit = [&](int turn, const Tensor& keys, const Tensor& values) {
    const Parts d = gradients(r, g, mean, turn, keys, values);
    dq = dq.defined() ? add(dq, d.q) : d.q;
    dk = dk.defined() ? add(dk, d.k) : d.k, dv = dv.defined() ? add(dv, d.v) : d.v;
    if (!scores) return;
    const Dim rest = k_.extent(-2) * Dim(ranks_ - 1) - first_key(turn);
    const Tensor placed = d.scores.pad(-1, first_key(turn), rest);
    *scores = scores->defined() ? add(*scores, placed) : placed;
  };
  if (ranks_ > 1) k = travel(k, -1, mean), v = travel(v, -1, mean);
  for (int turn = 1; turn < ranks_; ++turn) {
    const Tensor here = k, values = v;
    if (turn + 1 < ranks_) k = travel(k, -1, dq.defined() ? dq : mean), v = travel(v, -1, dq.defined() ? dq : mean);
    visit(turn, here, values);
    dk = travel(dk, -1, {}), dv = travel(dv, -1, {});
  }
  visit(0, k_, v_);
  return {cast(dq, q_.dtype()), cast(dk, k_.dtype()), cast(dv, v_.dtype())};
}

// ---- heads divided anew ------------------------------------------------------------------------------------

// Joins the rows of a first axis, one for each rank, to an axis of the others.
Tensor joined(const Tensor& rows, int axis) {
  Shape whole = rows.shape();
  whole.erase(whole.begin());
  whole[static_cast<std::size_t>(axis)] = whole[static_cast<std::size_t>(axis)] * rows.extent(0);
  std::vector<int> order;
  for (int k = 1; k < rows.rank(); ++k) {
    if (k == axis + 1) order.push_back(0);
    order.push_back(k);
  }
  return rows.permute(order).reshape(whole);
}

// Each rank has a part of axis `whole` before, and of axis `part` afterwards: [..., heads, s / n, d] to
// [..., heads / n, s, d] and back. Axes count from the end.
Tensor exchanged(const TextAttention& a, const Tensor& x, int part, int whole) {
  const int at = x.rank() + part, ranks = ranks_of(a);
  Shape s = x.shape();
  s[static_cast<std::size_t>(at)] = s[static_cast<std::size_t>(at)] / Dim(ranks);
  s.insert(s.begin() + at, Dim(ranks));
  std::vector<int> order{at};
  for (int k = 0; k <= x.rank(); ++k)
    if (k != at) order.push_back(k);
  return joined(a.ranks.all_to_all(x.reshape(s).permute(order), names_of(a)), x.rank() + whole);
}

// Whether the mask differs from query to query. One row is taken for that of a single query.
bool has_rows(const Tensor& mask, const Tensor& q) { return mask.rank() >= 2 && mask.extent(-2) == q.extent(-2); }

// The mask of this rank's heads for all queries.
Tensor mask_of_heads(const TextAttention& a, Tensor mask, const Tensor& q) {
  if (has_rows(mask, q)) mask = joined(a.ranks.all_gather(mask, names_of(a)), mask.rank() - 2);
  if (mask.rank() < 3 || mask.extent(-3) == Dim(1)) return mask;
  const Dim heads = mask.extent(-3) / Dim(ranks_of(a));
  return mask.slice(-3, heads * Dim(a.place), heads * Dim(a.place + 1));
}

std::vector<Tensor> over_heads(const TextAttention& a, const CompositeRef& c, const std::vector<Tensor>& in,
                               const Tensor* mask) {
  std::vector<Tensor> own, out;
  for (const Tensor& t : in) own.push_back(exchanged(a, t, kHeads, kRows));
  if (mask) own.push_back(mask_of_heads(a, *mask, in[0]));
  for (const Tensor& t : call(c, std::move(own), a.attributes)) out.push_back(exchanged(a, t, kRows, kHeads));
  return out;
}

bool divides_heads(const Tensor& q, const Tensor& k, int ranks) {
  const auto divided = [&](const Tensor& t) { return t.rank() >= 3 && t.extent(-3) % Dim(ranks) == Dim(0); };
  return divided(q) && divided(k);
}

double bytes(const Tensor& t) {
  return static_cast<double>(size_of(t.dtype())) * static_cast<double>(product(t.shape()).bounds().hi);
}
// Whether all_to_all sends at most as many bytes as a ring does.
bool prefers_heads(const TextAttention& a, const std::vector<Tensor>& in, const Tensor* mask) {
  const int ranks = ranks_of(a);
  if (!divides_heads(in[0], in[1], ranks)) return false;
  const double n = ranks, ring = (n - 1) * (bytes(in[1]) + bytes(in[2]));
  const double result = bytes(in[0]) / static_cast<double>(in[0].extent(-1).bounds().hi) *
                        static_cast<double>(in[2].extent(-1).bounds().hi);
  const double heads = (n - 1) / n * (bytes(in[0]) + bytes(in[1]) + bytes(in[2]) + result);
  return heads + (mask && has_rows(*mask, in[0]) ? (n - 1) * bytes(*mask) : 0) <= ring;
}

// ---- queries alone -----------------------------------------------------------------------------------------

// This rank's queries and all keys: what is causal becomes a mask, for the first query is not the first of the text.
std::vector<Tensor> over_queries(const TextAttention& a, const CompositeRef& c, std::vector<Tensor> in,
                                 const Tensor* mask) {
  Tensor own = mask ? *mask : Tensor();
  if (a.attributes.integer("causal") != 0) {
    const Dim first = in[0].extent(-2) * Dim(a.place);
    const Shape shape{in[0].extent(-2), in[1].extent(-2)};
    const Tensor before =
        in[0].graph().index(shape, less(Dim::index(1, shape[1]), Dim::index(0, shape[0]) + first + 1), DType::Bool);
    if (!mask) {
      own = before;
    } else {
      Shape s = own.shape();
      while (s.size() < 2) s.insert(s.begin(), Dim(1));
      s[s.size() - 2] = shape[0], s[s.size() - 1] = shape[1];
      const Tensor given = expand_to(own, s), allowed = expand_to(before, s);
      own = is_float(own.dtype()) ? where(allowed, given, like(given, -kInf)) : and_(given, allowed);
    }
  }
  if (own.defined()) in.push_back(own);
  return call(c, std::move(in), {{"scale", a.attributes.real("scale")}, {"causal", std::int64_t{0}}});
}

}  // namespace

std::vector<Tensor> text_attention(const TextAttention& a, const std::vector<Tensor>& in) {
  const Tensor* mask = in.size() > 3 ? &in[3] : nullptr;
  const std::vector<Tensor> qkv(in.begin(), in.begin() + 3);
  if (!a.keys) return over_queries(a, builtin::attention(), qkv, mask);
  if (prefers_heads(a, in, mask)) return over_heads(a, builtin::attention(), qkv, mask);
  const Tensor y = Ring(a, in, mask).forward().out;
  return {cast(y, in[0].dtype())};
}

std::vector<Tensor> text_attention_gradients(const TextAttention& a, const std::vector<Tensor>& in) {
  const Tensor* mask = in.size() > 4 ? &in[4] : nullptr;
  const std::vector<Tensor> with_g(in.begin(), in.begin() + 4);
  if (!a.keys) return over_queries(a, builtin::attention_gradients(), with_g, mask);
  if (prefers_heads(a, in, mask)) return over_heads(a, builtin::attention_gradients(), with_g, mask);
  return Ring(a, in, mask).backward(in[3], nullptr);
}

}  // namespace lc::distributed

namespace lc {
namespace {

using namespace distributed;

// A call of the functions for people, checked: what the composite of the whole text would accept.
struct Checked {
  Attributes attributes;
  std::vector<Tensor> in;  // the mask has all keys
};
Checked checked(const Collectives& ranks, const std::string& axis, const Tensor& q, const Tensor& k, const Tensor& v,
                const TextAttentionOptions& o) {
  const char* const op = "attention";
  const Dim n = ranks.mesh().axes()[static_cast<std::size_t>(ranks.mesh().axis(axis))].size;
  if (q.rank() < 2 || k.rank() != q.rank() || v.rank() != q.rank())
    throw Error(op, str_cat("q ", str(q.shape()), ", k ", str(k.shape()), " and v ", str(v.shape()),
                            " have one rank, at least 2"));
  if (!o.scale && !q.extent(-1).constant()) throw Error(op, "give a scale when the head size is symbolic");
  Checked c{{{"scale", o.scale ? *o.scale : 1 / std::sqrt(static_cast<double>(*q.extent(-1).constant()))},
             {"causal", std::int64_t{o.is_causal}}},
            {q, k, v}};
  std::vector<TensorType> types;
  for (const Tensor& t : c.in) types.push_back({t.dtype(), t.shape()});
  for (std::size_t i : {1, 2}) types[i].shape[types[i].shape.size() - 2] = k.extent(-2) * n;
  if (Tensor mask = o.attn_mask; mask.defined()) {
    if (mask.rank() > 0 && mask.extent(-1) == k.extent(-2) && !(mask.extent(-1) == Dim(1)))
      mask = joined(ranks.all_gather(mask, {axis}), mask.rank() - 1);
    if (mask.rank() == 0) mask = mask.reshape({1});
    c.in.push_back(mask), types.push_back({mask.dtype(), mask.shape()});
  }
  builtin::attention()->infer(c.attributes, types);
  return c;
}

}  // namespace

Tensor ring_attention(const Collectives& ranks, const std::string& axis, Operand q, Operand k, Operand v,
                      const TextAttentionOptions& o) {
  const OpScope scope("ring_attention", q.at);
  const Checked c = checked(ranks, axis, q, k, v, o);
  const Axes axes{ranks.mesh().axis(axis)};
  const auto ring = [ranks, axes, attributes = c.attributes](std::span<const Tensor> in) {
    return Ring({ranks, axes, true, ranks.mesh().place(ranks.rank(), axes), attributes}, {in.begin(), in.end()},
                in.size() > 3 ? &in[3] : nullptr);
  };
  const Tensor y = definitions::cast(ring(c.in).forward().out, q->dtype());
  return with_vjp(y, c.in, [ring](const VjpCall& call) {
    const bool masked = call.in.size() > 3 && is_float(call.in[3].dtype()) && call.wanted[3];
    Tensor scores;
    std::vector<Tensor> d = ring(call.in).backward(call.g(), masked ? &scores : nullptr);
    d.resize(call.in.size());
    if (masked) d[3] = definitions::cast(definitions::sum_to(scores, call.in[3].shape()), call.in[3].dtype());
    return d;
  });
}

Tensor all_to_all_attention(const Collectives& ranks, const std::string& axis, Operand q, Operand k, Operand v,
                            const TextAttentionOptions& o) {
  const OpScope scope("all_to_all_attention", q.at);
  const Checked c = checked(ranks, axis, q, k, v, o);
  const Axes axes{ranks.mesh().axis(axis)};
  const TextAttention a{ranks, axes, true, ranks.mesh().place(ranks.rank(), axes), c.attributes};
  if (!divides_heads(q, k, ranks_of(a)))
    throw Error("attention", str_cat(ranks_of(a), " ranks do not divide the heads of q ", str(q->shape()), " and k ",
                                     str(k->shape()), ": use ring_attention()"));
  return over_heads(a, builtin::attention(), {q, k, v}, c.in.size() > 3 ? &c.in[3] : nullptr)[0];
}

}  // namespace lc
