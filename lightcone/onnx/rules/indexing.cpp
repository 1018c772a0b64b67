// Elements by indices that are data, sorting, and results whose size depends on data.
#include "lightcone/ops/indexing/indexing.h"

#include <algorithm>

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {

// An extent as a tensor of this shape.
Tensor extent_at(const Tensor& like, const Dim& n) { return like.graph().index(like.shape(), n); }
Tensor place_on(const Tensor& like, int axis) {
  return like.graph().index(like.shape(), Dim::index(axis, like.extent(axis)));
}
// Indices as i64, of which negative ones count from the end.
Tensor from_start(const Tensor& index, const Dim& n) {
  const Tensor i = index.to(DType::I64);
  return where(i < 0, i + extent_at(i, n), i);
}

// ---- the largest elements, and elements in another order -----------------------------------------

Values top_k(Call& c) {
  const Tensor x = c.x();
  const int axis = c.axis("axis", -1, x.rank());
  Dim k = 0;
  if (c.opset < 10) {
    k = c.integer("k");
  } else {
    const std::vector<Dim> given = c.dims(1);
    if (given.size() != 1) c.refuse("needs one number of elements");
    k = given[0];
  }
  const bool largest = c.flag("largest", true);
  c.ignore("sorted");  // without it any order will do, and a sorted one is as good
  const Sorted s = topk(x, k, axis, largest);
  return {s.values, s.indices};
}

Values reverse_sequence(Call& c) {  // the first lengths[b] steps of each sample b
  const Tensor x = c.x(0), lengths = c.x(1).to(DType::I64);
  const int time = c.axis("time_axis", 0, x.rank()), batch = c.axis("batch_axis", 1, x.rank());
  if (time == batch || lengths.rank() != 1) c.refuse("needs two axes and a length for each sample");
  c.importer.same_extent(lengths.extent(0), x.extent(batch));
  Shape s(static_cast<std::size_t>(x.rank()), 1);
  s[static_cast<std::size_t>(batch)] = x.extent(batch);
  const Tensor n = lengths.reshape(s).expand(x.shape()), t = place_on(n, time);
  return {gather(x, time, where(t < n, n - t - 1, t))};
}

Values center_crop_pad(Call& c) {
  Tensor x = c.x();
  const std::vector<Dim> to = c.dims(1);
  std::vector<int> axes = all_axes(x.rank());
  if (c.has_attribute("axes")) {
    axes.clear();
    for (const std::int64_t a : c.integers("axes")) axes.push_back(c.wrap(a, x.rank()));
  }
  if (to.size() != axes.size()) c.refuse("needs an extent for each axis");
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const Dim n = x.extent(axes[k]), less = max(n - to[k], 0), more = max(to[k] - n, 0), begin = less / Dim(2);
    if (!(less == Dim(0))) x = x.slice(axes[k], begin, begin + (n - less));
    if (!(more == Dim(0))) x = x.pad(axes[k], more / Dim(2), more - more / Dim(2));
  }
  return {x};
}

// ---- scattering -----------------------------------------------------------------------------------

// "add", "mul", "max" or "min" as the name of scatter_reduce(), or "" for "none".
std::string_view scatter_reduction(Call& c) {
  const std::string_view name = c.text("reduction", "none");
  if (name == "none") return "";
  if (name == "add") return "sum";
  if (name == "mul") return "prod";
  if (name == "max") return "amax";
  if (name == "min") return "amin";
  c.refuse("has a reduction that is not none, add, mul, max or min");
}

Values scatter_elements(Call& c) {
  const Tensor x = c.x(0), updates = c.x(2);
  const int axis = c.axis("axis", 0, x.rank());
  Tensor index = c.x(1);
  if (index.rank() != x.rank() || updates.rank() != x.rank()) c.refuse("needs operands with as many axes");
  for (int k = 0; k < x.rank(); ++k) {
    c.importer.same_extent(index.extent(k), updates.extent(k));
    if (k != axis && !(x.extent(k) - index.extent(k)).constant()) c.importer.same_extent(index.extent(k), x.extent(k));
  }
  index = from_start(index, x.extent(axis));
  const std::string_view reduce = scatter_reduction(c);
  if (reduce.empty()) return {scatter(x, axis, index, updates)};
  return {reduce == "sum" ? scatter_add(x, axis, index, updates) : scatter_reduce(x, axis, index, updates, reduce)};
}

// The position of each index tuple [..., k] among `extents`, flattened: [m].
Tensor positions(const Tensor& tuples, const Shape& extents) {
  Shape s = tuples.shape();
  s.pop_back();
  Tensor at;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    const Tensor i = from_start(tuples.select(-1, static_cast<std::int64_t>(k)), extents[k]);
    at = k == 0 ? i : at * extent_at(i, extents[k]) + i;
  }
  return at.reshape({product(s)});
}

// Tuples of indices [n, k] whose number may depend on data: those of NonZero, transposed.
struct Tuples {
  Tensor at;
  std::optional<Value::Count> count = {};
  // A bool for each of them: whether it is one of the count.
  Tensor valid() const {
    const Dim n = at.extent(0);
    return at.graph().index({n}, Dim::index(0, n)) < count->number;
  }
};
Tuples tuples_of(Call& c, std::size_t operand) {
  const Value& v = c.value(operand);
  if (!v.count || v.count->axis != 0 || v.tensor.rank() != 2) return {c.x(operand)};
  return {v.tensor, v.count};
}

Values scatter_nd(Call& c) {
  const Tuples all = tuples_of(c, 1);
  const Tensor x = c.x(0), tuples = all.at;
  // As many updates as indices, counted in the same way.
  const bool counted = all.count && c.value(2).count && c.value(2).count->axis == 0;
  const Tensor updates = counted ? c.value(2).tensor : c.x(2);
  if (tuples.rank() == 0) c.refuse("needs tuples of indices");
  const std::int64_t depth = fixed(c, tuples.extent(-1), "the length of its index tuples");
  if (depth < 1 || depth > x.rank()) c.refuse("has index tuples of another length than 1 to the number of axes");
  const Shape s = x.shape(), rows = tuples.shape();
  Shape wanted(rows.begin(), rows.end() - 1);
  wanted.insert(wanted.end(), s.begin() + depth, s.end());
  if (updates.rank() != static_cast<int>(wanted.size())) c.refuse("has updates of another number of axes than needed");
  for (std::size_t k = 0; k < wanted.size(); ++k)
    c.importer.same_extent(updates.extent(static_cast<int>(k)), wanted[k]);
  const Shape outer(s.begin(), s.begin() + depth), inner(s.begin() + depth, s.end());
  const Tensor base = x.reshape({product(outer), product(inner)});
  Tensor at = positions(tuples, outer);
  if (all.count) at = where(all.valid(), at, full_like(at, -1));  // -1 writes nothing
  const Tensor values = updates.reshape({at.extent(0), product(inner)});
  const std::string_view reduce = scatter_reduction(c);
  if (reduce.empty()) return {index_copy(base, 0, at, values).reshape(s)};
  if (reduce == "sum") return {scatter_add(base, 0, at.unsqueeze(1).expand(values.shape()), values).reshape(s)};
  return {index_reduce(base, 0, at, values, reduce).reshape(s)};
}

Values gather_nd(Call& c) {
  const Tuples all = tuples_of(c, 1);
  const Tensor x = c.x(0), tuples = all.at;
  const std::int64_t batch = c.integer("batch_dims", 0);
  if (batch < 0 || batch >= std::min(x.rank(), tuples.rank())) c.refuse(str_cat("has batch_dims of ", batch));
  for (int k = 0; k < batch; ++k) c.importer.same_extent(x.extent(k), tuples.extent(k));
  const std::int64_t depth = fixed(c, tuples.extent(-1), "the length of its index tuples");
  if (depth < 1 || batch + depth > x.rank()) c.refuse("has index tuples of another length than its operand has axes");
  const Shape s = x.shape(), rows = tuples.shape();
  const Shape batches(s.begin(), s.begin() + batch), inner(s.begin() + batch + depth, s.end());
  const Shape outer(s.begin() + batch, s.begin() + batch + depth);
  Tensor at = positions(tuples, outer);
  if (all.count && batch > 0) c.refuse("has indices whose number depends on data, and batches");
  if (all.count) at = where(all.valid(), at, full_like(at, 0));
  if (batch > 0) {  // all batches are one axis
    const Dim each = product(Shape(rows.begin() + batch, rows.end() - 1));
    at = at.reshape({product(batches), each});
    at = (at + place_on(at, 0) * extent_at(at, product(outer))).reshape({product(batches) * each});
  }
  Shape to(rows.begin(), rows.end() - 1);
  to.insert(to.end(), inner.begin(), inner.end());
  const Dim places = product(batches) * product(outer);
  const Tensor r =
      inner.empty() ? take(x.reshape({places}), at) : index_select(x.reshape({places, product(inner)}), 0, at);
  if (all.count) return {Value(r.reshape(to), *all.count)};
  return {r.reshape(to)};
}

// Writes `update` into a cache from write_indices[b] on, for each sample b.
Values tensor_scatter(Call& c) {
  const Tensor cache = c.x(0), update = c.x(1), first = c.optional(2);
  const int axis = c.axis("axis", -2, cache.rank());
  const std::string_view mode = c.text("mode", "linear");
  if (mode != "linear" && mode != "circular") c.refuse("has a mode that is not linear or circular");
  if (axis == 0 || update.rank() != cache.rank()) c.refuse("needs samples, and an update with the cache's axes");
  for (int k = 0; k < cache.rank(); ++k)
    if (k != axis) c.importer.same_extent(update.extent(k), cache.extent(k));
  Tensor at = update.graph().index(update.shape(), Dim::index(axis, update.extent(axis)));
  if (first.defined()) {
    c.importer.same_extent(product(first.shape()), cache.extent(0));
    Shape s(static_cast<std::size_t>(cache.rank()), 1);
    s[0] = cache.extent(0);
    at = at + first.to(DType::I64).reshape(s).expand(update.shape());
  }
  if (mode == "circular") at = remainder(at, extent_at(at, cache.extent(axis)));
  return {scatter(cache, axis, at, update)};
}

Values array_feature_extractor(Call& c) {  // elements of the last axis
  const Tensor x = c.x(0), index = c.x(1).to(DType::I64);
  if (x.rank() == 0) c.refuse("needs an axis");
  const Tensor r = index_select(x, x.rank() - 1, index.reshape({product(index.shape())}));
  return {x.rank() == 1 ? r.unsqueeze(0) : r};
}

// ---- sizes that depend on data --------------------------------------------------------------------

// The element that all of x have, if it is a constant.
std::optional<double> single_value(const Tensor& x) {
  Tensor t = x;
  while (true) {
    const auto moves = t.edge().view.moves();
    if (std::ranges::any_of(moves, [](const Move& m) { return m.kind == MoveKind::Pad; })) return std::nullopt;
    const Node& n = t.node();
    if (n.op == Op::Constant) return n.value;
    if (n.op != Op::Contiguous) return std::nullopt;
    t = Tensor(t.graph(), n.in[0]);
  }
}
// The indices of all elements of a shape: [rank, elements].
Tensor all_indices(Call& c, const Shape& s) {
  const Dim n = product(s), i = Dim::index(0, n);
  std::vector<Tensor> rows;
  Dim inner = 1;
  for (std::size_t k = s.size(); k-- > 0; inner = inner * s[k])
    rows.insert(rows.begin(), c.graph().index({n}, i / inner % s[k]).unsqueeze(0));
  return rows.size() == 1 ? rows[0] : concat(rows, 0);
}
// The indices of elements that are known when the model is read, or an undefined tensor.
Tensor known_indices(Call& c, const Tensor& x) {
  const auto elements = c.importer.known().elements(x);
  if (!elements) return {};
  const std::vector<int> s = fixed(c, x.shape(), "an extent");
  std::vector<std::vector<Dim>> rows(s.size());
  std::int64_t count = 0;
  for (std::size_t e = 0; e < elements->size(); ++e) {
    const readers::KnownElement& v = (*elements)[e];
    if (!v.real && !v.whole.constant() && v.whole.bounds().lo <= 0) return {};
    if (v.real ? *v.real == 0 : v.whole == Dim(0)) continue;
    ++count;
    auto rest = static_cast<std::int64_t>(e);
    for (std::size_t k = s.size(); k-- > 0; rest /= s[k]) rows[k].emplace_back(rest % s[k]);
  }
  std::vector<Dim> all;
  for (const auto& r : rows) all.insert(all.end(), r.begin(), r.end());
  return tensor_of(c, all).reshape({static_cast<std::int64_t>(s.size()), count});
}
Values non_zero(Call& c) {
  const Tensor x = c.x();
  if (const auto v = single_value(x); v && *v != 0 && x.rank() > 0) return {all_indices(c, x.shape())};
  if (const Tensor known = known_indices(c, x); known.defined()) return {known};
  const Nonzero r = nonzero(x);
  return {Value(r.indices.t(), Value::Count{r.count, 1})};
}

Values compress(Call& c) {
  Tensor x = c.x(0);
  const Tensor keep = c.x(1);
  if (x.rank() == 0 || keep.rank() != 1) c.refuse("needs a tensor with axes and a row of bools");
  const bool flat = !c.has_attribute("axis");
  if (flat) x = x.reshape({product(x.shape())});
  const int axis = flat ? 0 : c.axis("axis", 0, x.rank());
  if (const Tensor known = known_indices(c, keep); known.defined())
    return {index_select(x, axis, known.reshape({known.extent(1)}))};
  const Nonzero r = nonzero(keep);
  const Tensor at = minimum(r.indices.select(1, 0), extent_at(r.indices.select(1, 0), x.extent(axis) - Dim(1)));
  return {Value(index_select(x, axis, at), Value::Count{r.count, axis})};
}

Values unique_(Call& c) {
  Tensor x = c.x();
  const bool sorted = c.flag("sorted", true), flat = !c.has_attribute("axis");
  if (flat) x = x.reshape({product(x.shape())});
  const int axis = flat ? 0 : c.axis("axis", 0, x.rank());
  const Unique u = flat ? unique(x) : unique_dim(x, axis);
  const Tensor at = place_on(u.inverse, 0), beyond = extent_at(at, at.extent(0));
  // The first occurrence of each is the last one written.
  Tensor first = scatter(beyond, 0, u.inverse.flip(0), at.flip(0)), counts = u.counts, inverse = u.inverse;
  if (!sorted) {
    const Tensor order = argsort(first, 0);
    first = gather(first, 0, order), counts = gather(counts, 0, order);
    inverse = gather(scatter(at, 0, order, at), 0, inverse);
  }
  first = where(first < beyond, first, full_like(first, 0));
  const auto counted = [&](const Tensor& t, int on) { return Value(t, Value::Count{u.count, on}); };
  return {counted(index_select(x, axis, first), axis), counted(first, 0), inverse, counted(counts, 0)};
}

}  // namespace

void add_indexing(Operators& t) {
  const Operator rows[] = {
      {"", "CenterCropPad", 18, center_crop_pad, "slice, pad"},
      {"", "Compress", 9, compress, "index_select, with a count if the condition is data"},
      {"", "GatherND", 11, gather_nd, "index_select of flattened axes"},
      {"", "NonZero", 9, non_zero, "nonzero, with a count if the operand is data"},
      {"", "ReverseSequence", 10, reverse_sequence, "gather"},
      {"", "Scatter", 9, scatter_elements, "scatter"},
      {"", "ScatterElements", 11, scatter_elements, "scatter, scatter_add, scatter_reduce"},
      {"", "ScatterND", 11, scatter_nd, "index_copy, scatter_add, index_reduce of flattened axes"},
      {"", "TensorScatter", 24, tensor_scatter, "scatter"},
      {"", "TopK", 1, top_k, "topk"},
      {"", "Unique", 11, unique_, "unique, with a count"},
      {kMl, "ArrayFeatureExtractor", 1, array_feature_extractor, "index_select"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
