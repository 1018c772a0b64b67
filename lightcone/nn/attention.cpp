#include "lightcone/nn/attention.h"
#include "lightcone/composites/composites.h"

#include <cmath>
#include <limits>

namespace lc::nn {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
const Init xavier = [](const init::Extents& s, const init::Source& from) { return init::xavier_uniform(s, from); };

// Attention weights, softmax(q k^T / sqrt(d)), with masked keys excluded. Keys may have fewer heads than queries.
lc::Tensor weights_of(const lc::Tensor& q, lc::Tensor k, const lc::Tensor& mask) {
  const auto d = static_cast<double>(*q.extent(-1).constant());
  const auto group = *q.extent(1).constant() / *k.extent(1).constant();
  if (group > 1) k = repeat_interleave(k, static_cast<int>(group), 1);
  lc::Tensor scores = matmul(q, k.transpose(2, 3)) * (1 / std::sqrt(d));
  if (!mask.defined()) return softmax(scores, -1);
  return softmax(is_float(mask.dtype()) ? scores + mask : masked_fill(scores, logical_not(mask), kNever), -1);
}

// Causal mask, bool [queries, keys]: true if key j <= past + i for query i.
lc::Tensor lower(Graph& g, const Dim& queries, const Dim& keys, const Dim& past = 0) {
  const Shape s{queries, keys};
  return g.index(s, Dim::index(1, keys)) <= g.index(s, past + Dim::index(0, queries));
}

}  // namespace

KeyValueCache::KeyValueCache(Graph& g, const std::string& keys, const std::string& values, const Shape& shape,
                             const Dim& past, DType stored, const std::optional<Shape>& value_shape)
    : past_(past) {
  if (stored != DType::F32 && stored != DType::F16 && stored != DType::BF16 && stored != DType::I8)
    throw Error("KeyValueCache", str_cat("a cache of ", name(stored), ": it can be f32, f16, bf16 or i8"));
  if (shape.size() < 3) throw Error("KeyValueCache", str(shape) + " is not [..., kv_heads, capacity, head]");
  keys_ = state(g, keys, shape, stored), values_ = state(g, values, value_shape.value_or(shape), stored);
}

KeyValueCache::State KeyValueCache::state(Graph& g, const std::string& name, const Shape& shape, DType stored) const {
  if (stored != DType::I8) return {g.input(name, shape, stored), {}};
  Shape one = shape;
  one.back() = 1;
  return {g.input(name, shape, stored), g.input(name + ".scale", one)};
}

// Writes new positions into a state and returns all positions so far.
lc::Tensor KeyValueCache::store(const lc::Tensor& state, const lc::Tensor& now) const {
  const int positions = state.rank() - 2;
  bool fits = now.rank() == state.rank();
  for (int axis = 0; fits && axis < state.rank(); ++axis)
    fits = axis == positions || now.extent(axis) == state.extent(axis);
  if (!fits) throw Error("KeyValueCache", str_cat("states ", str(state.shape()), " do not take ", str(now.shape())));
  const lc::Tensor next = prim::slice_scatter(state, now, positions, past_);
  state.graph().assign(state, next);
  return next.slice(positions, 0, past_ + now.extent(positions));
}

// i8: the nearest multiples of 1/127 of the largest magnitude of a head and position. If all elements are zero, 0 / 0
// is NaN, which casts to 0.
lc::Tensor KeyValueCache::append(const State& to, const lc::Tensor& now) const {
  const DType stored = to.numbers.dtype();
  if (stored != DType::I8) return prim::cast(store(to.numbers, prim::cast(now, stored)), DType::F32);
  const lc::Tensor scale = amax(abs(now), {-1}, true) * (1.0 / 127), x = now / scale;
  const lc::Tensor codes = prim::cast(x + (0.5 - prim::cast(x < 0.0, DType::F32)), DType::I8);  // truncates, saturates
  return prim::cast(store(to.numbers, codes), DType::F32) * store(to.scale, scale);
}

KeyValueCache::All KeyValueCache::append(const lc::Tensor& keys, const lc::Tensor& values) const {
  if (!keys_.numbers.defined()) throw Error("KeyValueCache", "it has no states: MultiheadAttention::cache() makes it");
  const lc::Tensor k = append(keys_, keys);
  return {k, append(values_, values)};
}

MultiheadAttention::MultiheadAttention(std::int64_t width, int heads, const AttentionLayerOptions& o)
    : width_(width), heads_(heads), o_(o) {
  if (heads < 1 || width < 1 || width % heads != 0)
    throw Error("MultiheadAttention", str_cat(heads, " heads do not divide a width of ", width));
  if (o.kv_heads < 0 || heads % kv_heads() != 0)
    throw Error("MultiheadAttention", str_cat(o.kv_heads, " heads of keys and values do not divide ", heads));
  if (!(o.dropout >= 0 && o.dropout <= 1) || o.kdim < 0 || o.vdim < 0)
    throw Error("MultiheadAttention", str_cat("dropout is ", o.dropout, ", kdim ", o.kdim, ", vdim ", o.vdim));
}

void MultiheadAttention::visit(Visitor& v) {
  const std::int64_t rows = rows_of(kQuery) + rows_of(kKey) + rows_of(kValue);
  if (one_width()) {
    v.parameter("in_proj_weight", in_proj_weight, {rows, width_}, xavier);
  } else {
    v.parameter("q_proj_weight", q_proj_weight, {rows_of(kQuery), width_}, xavier);
    v.parameter("k_proj_weight", k_proj_weight, {rows_of(kKey), input_of(kKey)}, xavier);
    v.parameter("v_proj_weight", v_proj_weight, {rows_of(kValue), input_of(kValue)}, xavier);
  }
  if (o_.bias) v.parameter("in_proj_bias", in_proj_bias, {rows}, constant_init(0));
  v.parameter("out_proj.weight", out_proj_weight, {width_, width_},
              uniform_init(1 / std::sqrt(static_cast<double>(width_))));
  if (o_.bias) v.parameter("out_proj.bias", out_proj_bias, {width_}, constant_init(0));
}

lc::Tensor MultiheadAttention::projected(Part p, const lc::Tensor& x) const {
  const std::int64_t begin = p == kQuery ? 0
                             : p == kKey ? rows_of(kQuery)
                                         : rows_of(kQuery) + rows_of(kKey),
                     end = begin + rows_of(p);
  const lc::Tensor weight = one_width()   ? in_proj_weight.slice(0, begin, end)
                            : p == kQuery ? q_proj_weight
                            : p == kKey   ? k_proj_weight
                                          : v_proj_weight;
  const lc::Tensor y = o_.bias ? linear(x, weight, in_proj_bias.slice(0, begin, end)) : linear(x, weight);
  return y.reshape({x.extent(0), x.extent(1), rows_of(p) / head(), head()}).permute({0, 2, 1, 3});
}

// Combines all masks into one for the scores [b, heads, n, m]: bool (true: attend) or floating (added to the scores).
// The result is undefined if nothing is masked.
lc::Tensor MultiheadAttention::mask(const AttentionMasks& m, const Dim& batch, const Dim& n, const Dim& keys,
                                    Graph& g) const {
  lc::Tensor look, added;
  const auto restrict_to = [&look](const lc::Tensor& t) { look = look.defined() ? logical_and(look, t) : t; };
  const auto take = [&](const lc::Tensor& t, const Shape& shape) {
    if (t.dtype() == DType::Bool) restrict_to(logical_not(t.reshape(shape)));
    else if (is_float(t.dtype())) added = added.defined() ? added + t.reshape(shape) : t.reshape(shape);
    else throw Error("MultiheadAttention", str_cat("a mask is bool or floating, not ", name(t.dtype())));
  };
  if (const lc::Tensor& t = m.key_padding_mask; t.defined()) {
    if (t.shape() != Shape{batch, keys})
      throw Error("MultiheadAttention",
                  str_cat("key_padding_mask is ", str(t.shape()), " and not ", str(Shape{batch, keys})));
    take(t, {batch, 1, 1, keys});
  }
  if (const lc::Tensor& t = m.attn_mask; t.defined()) {
    const Shape each{batch * Dim(heads_), n, keys}, same{n, keys};
    if (t.shape() != each && t.shape() != same)
      throw Error("MultiheadAttention",
                  str_cat("attn_mask is ", str(t.shape()), " and neither ", str(same), " nor ", str(each)));
    take(t, t.rank() == 2 ? Shape{1, 1, n, keys} : Shape{batch, heads_, n, keys});
  }
  if (m.causal || o_.causal) restrict_to(lower(g, n, keys));
  if (!added.defined() || !look.defined()) return added.defined() ? added : look;
  return where(look, added, kNever);
}

lc::Tensor MultiheadAttention::output(const lc::Tensor& y) const {  // y is [b, heads, n, head]
  const lc::Tensor joined = y.permute({0, 2, 1, 3}).reshape({y.extent(0), y.extent(2), width_});
  return o_.bias ? linear(joined, out_proj_weight, out_proj_bias) : linear(joined, out_proj_weight);
}

void MultiheadAttention::check_shapes(const lc::Tensor& query, const lc::Tensor& key, const lc::Tensor& value) const {
  require_visited("MultiheadAttention", out_proj_weight);
  const lc::Tensor* const in[] = {&query, &key, &value};
  for (const Part p : {kQuery, kKey, kValue})
    if (in[p]->rank() != 3 || !(in[p]->extent(2) == Dim(input_of(p))))
      throw Error("MultiheadAttention", str_cat(str(in[p]->shape()), " is not [batch, length, ", input_of(p), "]"));
  if (!(query.extent(0) == key.extent(0)) || !(key.extent(0) == value.extent(0)) || !(key.extent(1) == value.extent(1)))
    throw Error("MultiheadAttention",
                str_cat("queries ", str(query.shape()), ", keys ", str(key.shape()), " and values ", str(value.shape()),
                        " have one batch, keys and values one length"));
}

lc::Tensor MultiheadAttention::attend(Operand query, const lc::Tensor& key, const lc::Tensor& value,
                                      const AttentionMasks& masks, Random* random) const {
  const OpScope scope("MultiheadAttention", query.at);
  if (query->rank() == 2 && key.rank() == 2 && value.rank() == 2) {  // no batch
    AttentionMasks m = masks;
    if (m.key_padding_mask.defined()) m.key_padding_mask = m.key_padding_mask.unsqueeze(0);
    return attend(query->unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), m, random).squeeze(0);
  }
  check_shapes(query, key, value);
  const lc::Tensor q = projected(kQuery, query), k = projected(kKey, key), v = projected(kValue, value);
  const bool plain = !masks.key_padding_mask.defined() && !masks.attn_mask.defined();
  if (!random && plain)
    return output(scaled_dot_product_attention(q, k, v, AttentionOptions{.is_causal = masks.causal || o_.causal}));
  const lc::Tensor m = mask(masks, q.extent(0), q.extent(2), k.extent(2), query->graph());
  if (!random) return output(scaled_dot_product_attention(q, k, v, m));
  const lc::Tensor weights = random->dropout(weights_of(q, k, m), o_.dropout);
  const int group = heads_ / kv_heads();
  return output(matmul(weights, group > 1 ? repeat_interleave(v, group, 1) : v));
}

MultiheadAttention::Weighted MultiheadAttention::with_weights(const lc::Tensor& query, const lc::Tensor& key,
                                                              const lc::Tensor& value, const AttentionMasks& masks,
                                                              const At& at) const {
  const OpScope scope("MultiheadAttention", at);
  check_shapes(query, key, value);
  const lc::Tensor q = projected(kQuery, query), k = projected(kKey, key);
  const lc::Tensor m = mask(masks, q.extent(0), q.extent(2), k.extent(2), query.graph());
  return {attend(query, key, value, masks, nullptr), mean(weights_of(q, k, m), {1})};
}

KeyValueCache MultiheadAttention::cache(Graph& g, const std::string& name, const Dim& batch, std::int64_t capacity,
                                        const Dim& past, DType stored) const {
  return {g, name + ".keys", name + ".values", {batch, kv_heads(), capacity, head()}, past, stored};
}

lc::Tensor MultiheadAttention::decode(const lc::Tensor& x, const KeyValueCache& cache, const At& at) const {
  const OpScope scope("MultiheadAttention", at);
  check_shapes(x, x, x);
  const Dim n = x.extent(1);
  const lc::Tensor q = projected(kQuery, x);
  const auto [k, v] = cache.append(projected(kKey, x), projected(kValue, x));
  return output(scaled_dot_product_attention(q, k, v, lower(x.graph(), n, k.extent(2), cache.past())));
}

}  // namespace lc::nn
