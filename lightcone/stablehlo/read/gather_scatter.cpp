// Rules for gather and scatter with all of their dimension numbers, as rows of a matrix that are read and written.
//
// Axes of the operand that every piece contains entirely are moved last, as the elements of a row. The other axes form
// one axis of rows, in which the location of a piece is an index. An embedding is therefore one gather of rows, and no
// index is computed twice.
#include <algorithm>
#include <numeric>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/ops/loop.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

bool contains(const Integers& v, std::int64_t x) { return std::ranges::find(v, x) != v.end(); }

// The dimension numbers of gather and scatter, by gather's names.
struct Numbers {
  Integers offset;         // axes of the result (of the updates) that run through a piece
  Integers collapsed;      // axes of the operand of which a piece has one element
  Integers operand_batch;  // axes of the operand that are batched with
  Integers indices_batch;  // these axes of the indices
  Integers start_map;      // the axis that each number of an index is for
  std::int64_t vector_axis = 0;
};

// Indices in the axis of rows; the other axes are whole.
class Places {
 public:
  Places(const Call& c, const Tensor& operand, const Tensor& indices, Numbers n, const Integers& piece, bool clamped);

  // Returns the rows of the pieces, i64 [batch..., axes of a piece that are not whole...]. A row outside of the operand
  // is the number of rows.
  const Tensor& rows() const { return rows_; }
  Tensor to_rows(const Tensor& operand) const;  // [rows, elements of a row]
  Tensor from_rows(const Tensor& rows) const;   // inverse of to_rows()
  // Permutation between the result [..] and [batch..., pieces..., whole...].
  std::vector<int> order() const { return order_; }
  const Shape& whole() const { return whole_shape_; }

 private:
  Tensor start(std::int64_t axis) const;

  const Call& c_;
  Numbers n_;
  Shape operand_;
  Tensor index_;  // i64 [batch..., numbers]
  Shape batch_;
  std::vector<int> moving_, whole_;  // axes of the operand
  Shape whole_shape_;
  std::vector<int> order_;
  Tensor rows_;
};

Places::Places(const Call& c, const Tensor& operand, const Tensor& indices, Numbers n, const Integers& piece,
               bool clamped)
    : c_(c), n_(std::move(n)), operand_(operand.shape()) {
  const auto rank = static_cast<std::int64_t>(operand_.size());
  if (is_float(indices.dtype()) || indices.dtype() == DType::Bool) c.refuse("indices are integers");
  if (static_cast<std::int64_t>(piece.size()) != rank) c.refuse("has not one size of a piece for each axis");
  for (const Integers* v : {&n_.collapsed, &n_.operand_batch, &n_.start_map})
    for (const std::int64_t a : *v)
      if (a < 0 || a >= rank) c.refuse(str_cat("there is no axis ", a, " in the operand"));
  if (n_.vector_axis < 0 || n_.vector_axis > indices.rank() || n_.operand_batch.size() != n_.indices_batch.size())
    c.refuse("its dimension numbers do not fit");
  Tensor index = indices.dtype() == DType::U64 ? prim::minimum(indices, full_like(indices, INT64_MAX)) : indices;
  index = prim::cast(index, DType::I64);
  if (n_.vector_axis == indices.rank()) index = index.unsqueeze(indices.rank());
  std::vector<int> last;
  for (int a = 0; a < index.rank(); ++a)
    if (a != n_.vector_axis) last.push_back(a);
  last.push_back(static_cast<int>(n_.vector_axis));
  index_ = index.permute(last);
  batch_ = index_.shape();
  batch_.pop_back();
  if (!(index_.extent(-1) == Dim(static_cast<std::int64_t>(n_.start_map.size()))))
    c.refuse("an index has not one number for each axis that it is for");

  Shape pieces;  // extents of the moving axes that a piece keeps
  std::vector<int> kept_moving, kept_whole;
  for (int a = 0, kept = 0; a < rank; ++a) {
    const Dim full = operand_[a];
    const std::int64_t size = piece[a];
    if (size < 0 || size > *full.constant())
      c.refuse(str_cat("a piece of ", size, " does not fit axis ", a, " of ", lc::str(operand_)));
    const bool gone = contains(n_.collapsed, a) || contains(n_.operand_batch, a);
    if (gone && size > 1) c.refuse(str_cat("axis ", a, " goes away and has ", size, " elements of a piece"));
    const bool is_whole = !gone && full == Dim(size) && (clamped || !contains(n_.start_map, a));
    (is_whole ? whole_ : moving_).push_back(a);
    if (is_whole) whole_shape_.push_back(full);
    else if (!gone) pieces.push_back(size);
    if (!gone) (is_whole ? kept_whole : kept_moving).push_back(kept++);
  }
  if (n_.offset.size() != kept_moving.size() + kept_whole.size())
    c.refuse("has not one offset axis for each axis of a piece");

  // Compute the rows, and whether they exist.
  Shape all = batch_;
  all.insert(all.end(), pieces.begin(), pieces.end());
  const auto spread = [&](const Tensor& t) {  // [batch...] to all
    Shape s = batch_;
    s.resize(all.size(), 1);
    return t.reshape(s).expand(all);
  };
  Tensor row = lc::full(c.graph(), all, 0, DType::I64), inside;
  auto next = static_cast<int>(batch_.size());
  for (const int a : moving_) {
    const std::int64_t extent = *operand_[a].constant(), size = piece[a];
    Tensor at = start(a);
    if (clamped) at = prim::minimum(prim::maximum(at, full_like(at, 0)), full_like(at, extent - size));
    at = spread(at);
    if (!contains(n_.collapsed, a) && !contains(n_.operand_batch, a))
      at = prim::add(at, index_along(c.graph(), all, next++));
    if (!clamped) {
      const Tensor here =
          logical_and(logical_not(prim::less_than(at, full_like(at, 0))), prim::less_than(at, full_like(at, extent)));
      inside = inside.defined() ? logical_and(inside, here) : here;
    }
    row = prim::add(prim::mul(row, full_like(row, extent)), at);
  }
  Dim rows = 1;
  for (const int a : moving_) rows = rows * operand_[a];
  // The index after the last row, because scatter_reduce() counts negative indices from the end.
  rows_ = inside.defined() ? prim::where(inside, row, full_like(row, *rows.constant())) : row;

  // Find the position of each axis of the result in [batch..., pieces..., whole...].
  const std::size_t total = batch_.size() + n_.offset.size();
  Integers sorted = n_.offset;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end() ||
      (!sorted.empty() && (sorted[0] < 0 || sorted.back() >= static_cast<std::int64_t>(total))))
    c.refuse("its offset axes are not different axes of the result");
  int b = 0;
  for (std::int64_t a = 0; a < static_cast<std::int64_t>(total); ++a) {
    const auto it = std::ranges::find(sorted, a);
    if (it == sorted.end()) {
      order_.push_back(b++);
      continue;
    }
    const int kept = static_cast<int>(it - sorted.begin());
    const auto m = std::ranges::find(kept_moving, kept);
    const auto before = static_cast<int>(batch_.size());
    if (m != kept_moving.end()) order_.push_back(before + static_cast<int>(m - kept_moving.begin()));
    else
      order_.push_back(
          before + static_cast<int>(kept_moving.size() + static_cast<std::size_t>(std::ranges::find(kept_whole, kept) -
                                                                                  kept_whole.begin())));
  }
}

// Returns the start of the pieces along an axis of the operand: i64 [batch...].
Tensor Places::start(std::int64_t axis) const {
  if (const auto it = std::ranges::find(n_.start_map, axis); it != n_.start_map.end())
    return index_.select(index_.rank() - 1, it - n_.start_map.begin());
  if (const auto it = std::ranges::find(n_.operand_batch, axis); it != n_.operand_batch.end()) {
    std::int64_t a = n_.indices_batch[it - n_.operand_batch.begin()];
    if (a > n_.vector_axis) --a;
    if (a < 0 || a >= static_cast<std::int64_t>(batch_.size())) c_.refuse("its batching axes do not fit");
    return index_along(c_.graph(), batch_, static_cast<int>(a));
  }
  return lc::full(c_.graph(), batch_, 0, DType::I64);
}

Tensor Places::to_rows(const Tensor& operand) const {
  std::vector<int> order = moving_;
  order.insert(order.end(), whole_.begin(), whole_.end());
  Dim rows = 1;
  for (const int a : moving_) rows = rows * operand_[a];
  return operand.permute(order).reshape({rows, product(whole_shape_)});
}

Tensor Places::from_rows(const Tensor& rows) const {
  std::vector<int> order = moving_;
  order.insert(order.end(), whole_.begin(), whole_.end());
  Shape s;
  std::vector<int> back(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) s.push_back(operand_[order[k]]), back[order[k]] = static_cast<int>(k);
  return rows.reshape(s).permute(back);
}

// ---- gather -----------------------------------------------------------------------------------------

std::vector<Tensor> gather_with(const Call& c, const Integers& piece) {
  const AttributeList& d = c.fields("dimension_numbers");
  const Tensor &x = c.in.at(0), &indices = c.in.at(1);
  const Places p(c, x, indices,
                 {integers_of(d, "offset_dims"), integers_of(d, "collapsed_slice_dims"),
                  integers_of(d, "operand_batching_dims"), integers_of(d, "start_indices_batching_dims"),
                  integers_of(d, "start_index_map"), integer_of(d, "index_vector_dim", 0)},
                 piece, true);
  Shape s = p.rows().shape();
  s.insert(s.end(), p.whole().begin(), p.whole().end());
  if (product(s) == Dim(0)) return {full(c.graph(), s, 0, x.dtype()).permute(p.order())};
  const Tensor rows = index_select(p.to_rows(x), 0, p.rows().reshape({product(p.rows().shape())}));
  return {rows.reshape(s).permute(p.order())};
}
std::vector<Tensor> gather(const Call& c) {
  if (c.in.size() != 2) c.refuse("takes an operand and indices");
  return gather_with(c, c.integers("slice_sizes"));
}
std::vector<Tensor> dynamic_gather(const Call& c) {
  const auto sizes = c.in.size() == 3 ? c.reader.known(c.in[2]) : std::nullopt;
  if (!sizes) c.refuse("its sizes depend on data");
  return gather_with(c, *sizes);
}

// ---- scatter ----------------------------------------------------------------------------------------

// Combines one row after the other, for bodies that are not recognised.
Tensor row_by_row(const Call& c, const Block& body, const Tensor& base, const Tensor& index, const Tensor& from) {
  constexpr std::int64_t kMostRows = 1 << 20;
  if (*index.extent(0).constant() > kMostRows)
    c.refuse(str_cat("joins more than ", kMostRows, " rows by a body of its own"));
  const Scanned r = scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& x) {
        const Tensor at = x[0].reshape({1}), row = index_select(state[0], 0, prim::maximum(at, full_like(at, 0)));
        const Tensor joined = c.reader.elementwise(body, std::vector{row, x[1].unsqueeze(0)})[0];
        return Scanned{{index_copy(state[0], 0, at, joined)}, {}};
      },
      {base}, {index, from}, {.keep_states = false});
  return r.state[0];
}

Tensor joined(const Call& c, const Block& body, const Tensor& base, const Tensor& index, const Tensor& from) {
  const std::string how = simple_reducer(body);
  const Tensor wide = index.unsqueeze(1).expand(from.shape());
  if (how == "second") return prim::scatter(base, wide, from, 0);
  if (how == "stablehlo.add" && base.dtype() != DType::Bool) return prim::scatter_add(base, wide, from, 0);
  const char* reduce = how == "stablehlo.maximum"    ? "amax"
                       : how == "stablehlo.minimum"  ? "amin"
                       : how == "stablehlo.multiply" ? "prod"
                                                     : nullptr;
  if (reduce && base.dtype() != DType::Bool) return scatter_reduce(base, 0, wide, from, reduce);
  if (!c.flag("unique_indices") && !(index.extent(0) == Dim(1))) return row_by_row(c, body, base, index, from);
  const Tensor old = index_select(base, 0, prim::maximum(index, full_like(index, 0)));
  return prim::scatter(base, wide, c.reader.elementwise(body, std::vector{old, from})[0], 0);
}

std::vector<Tensor> scatter(const Call& c) {
  if (c.in.size() != 3) c.refuse("of several operands at once is not supported");
  const AttributeList& d = c.fields("scatter_dimension_numbers");
  const Tensor &x = c.in[0], &indices = c.in[1], &updates = c.in[2];
  const Block& body = c.region(0, 2, 1);
  if (updates.dtype() != x.dtype()) c.refuse("operands have different element types");
  Numbers n{integers_of(d, "update_window_dims"),           integers_of(d, "inserted_window_dims"),
            integers_of(d, "input_batching_dims"),          integers_of(d, "scatter_indices_batching_dims"),
            integers_of(d, "scatter_dims_to_operand_dims"), integer_of(d, "index_vector_dim", 0)};
  Integers piece;  // the shape of the updates gives the size of pieces
  std::size_t next = 0;
  Integers window = n.offset;
  std::ranges::sort(window);
  for (std::int64_t a = 0; a < x.rank(); ++a) {
    if (contains(n.collapsed, a) || contains(n.operand_batch, a)) {
      piece.push_back(1);
    } else {
      if (next >= window.size() || window[next] < 0 || window[next] >= updates.rank())
        c.refuse("its window axes do not fit");
      piece.push_back(*updates.extent(static_cast<int>(window[next++])).constant());
    }
  }
  if (product(x.shape()) == Dim(0) || product(updates.shape()) == Dim(0)) return {x};
  const Places p(c, x, indices, n, piece, false);
  std::vector<int> back(p.order().size());
  for (std::size_t k = 0; k < back.size(); ++k) back[p.order()[k]] = static_cast<int>(k);
  Shape s = p.rows().shape();
  s.insert(s.end(), p.whole().begin(), p.whole().end());
  if (updates.rank() != static_cast<int>(back.size()) || !(updates.permute(back).shape() == s))
    c.refuse(str_cat("updates of ", lc::str(updates.shape()), " do not fit the indices and the operand"));
  const Dim rows = product(p.rows().shape());
  const Tensor from = updates.permute(back).reshape({rows, product(p.whole())});
  return {p.from_rows(joined(c, body, p.to_rows(x), p.rows().reshape({rows}), from))};
}

// An operation of older modules: slices of one axis at indices of any shape.
std::vector<Tensor> index_select(const Call& c) {
  if (c.in.size() != 2 || is_float(c.in[1].dtype())) c.refuse("takes a tensor and places");
  const std::int64_t dim = c.integer("dim", 0);
  if (c.integer("batch_dims", 0) != 0) c.refuse("with batch axes is not supported");
  if (dim < 0 || dim >= c.x().rank()) c.refuse(str_cat("there is no axis ", dim));
  const auto axis = static_cast<std::size_t>(dim);
  const Tensor places = c.in[1].reshape({product(c.in[1].shape())});
  Shape picked = c.x().shape(), place(picked.size(), Dim(1)), to = picked;
  const Shape some = c.in[1].shape();
  place[axis] = picked[axis] = places.extent(0);
  to.erase(to.begin() + dim);
  to.insert(to.begin() + dim, some.begin(), some.end());
  return {prim::gather(c.x(), places.reshape(place).expand(picked), static_cast<int>(dim)).reshape(to)};
}

}  // namespace

void add_gather_scatter(Rules& r) {
  r["stablehlo.torch_index_select"] = index_select;
  r["stablehlo.gather"] = gather;
  r["stablehlo.dynamic_gather"] = dynamic_gather;
  r["stablehlo.scatter"] = scatter;
}

}  // namespace lc::stablehlo
