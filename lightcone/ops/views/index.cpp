// NumPy's indexing: numbers, slices and integer tensors, axis by axis.
#include "lightcone/composites/composites.h"

#include <algorithm>
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace {

// Python's a[begin:end:step] for one axis; a symbolic extent allows only positive steps from a known start.
Tensor sliced(const Tensor& t, int axis, const Slice& s) {
  if (!s.begin && !s.end && s.step == 1) return t;
  const Dim n = t.extent(axis);
  if (const auto known = n.constant()) {
    const bool forward = s.step > 0;
    return slice(t, axis, s.begin.value_or(forward ? 0 : *known - 1), s.end.value_or(forward ? *known : -*known - 1),
                 s.step);
  }
  return t.slice(axis, s.begin ? Dim(*s.begin) : Dim(0), s.end ? Dim(*s.end) : n, s.step);
}

struct Picked {
  int axis;
  Tensor index;
};

// Replaces the axes indexed by tensors by their common broadcast shape: merges the axes and reads with a single gather.
Tensor picked(Tensor t, std::vector<Picked> by) {
  Shape common;
  for (const Picked& p : by) {
    if (p.index.dtype() == DType::Bool)
      throw Error("index",
                  "an index is a mask: where(), masked_fill() and masked_scatter() write by masks, "
                  "masked_select() reads");
    if (is_float(p.index.dtype())) throw Error("index", str_cat("indices are integers, not ", name(p.index.dtype())));
    common = broadcast(common, p.index.shape(), "index");
  }
  bool together = true;
  for (std::size_t k = 1; k < by.size(); ++k) together = together && by[k].axis == by[k - 1].axis + 1;
  const int place = together ? by[0].axis : 0;
  std::vector<int> order, moved;
  for (const Picked& p : by) moved.push_back(p.axis);
  for (int i = 0; i < t.rank(); ++i)
    if (std::find(moved.begin(), moved.end(), i) == moved.end()) order.push_back(i);
  order.insert(order.begin() + place, moved.begin(), moved.end());

  Tensor flat, outside;  // position in the merged axis; whether any index is out of range
  for (const Picked& p : by) {
    const Dim n = t.extent(p.axis);
    const Tensor i = prim::cast(expand_to(p.index, common), DType::I64), size = i.graph().index(i.shape(), n);
    const Tensor from_start = in_range(prim::where(prim::less_than(i, full_like(i, 0)), prim::add(i, size), i), n);
    const Tensor off = logical_or(from_start < 0, from_start >= size);
    flat = flat.defined() ? prim::add(prim::mul(flat, size), from_start) : from_start;
    outside = outside.defined() ? logical_or(outside, off) : off;
  }
  flat = prim::where(outside, full_like(flat, -1), flat);

  t = t.permute(order);
  const Shape s = t.shape();
  Shape joined(s.begin(), s.begin() + place), out = joined;
  const auto behind = s.begin() + place + static_cast<std::ptrdiff_t>(by.size());
  joined.push_back(product(Shape(s.begin() + place, behind)));
  joined.insert(joined.end(), behind, s.end());
  out.insert(out.end(), common.begin(), common.end());
  out.insert(out.end(), behind, s.end());
  Shape row(joined.size(), 1), wide = joined;
  row[place] = wide[place] = product(common);
  return prim::gather(t.reshape(joined), flat.reshape(row).expand(wide), place).reshape(out);
}

}  // namespace

Tensor index(Operand a, const std::vector<Index>& indices) {
  const OpScope scope("index", a.at);
  int named = 0, gaps = 0;
  for (const Index& i : indices) {
    gaps += std::holds_alternative<EllipsisIndex>(i);
    named += !std::holds_alternative<EllipsisIndex>(i) && !std::holds_alternative<NewAxisIndex>(i);
  }
  if (gaps > 1) throw Error("index", "two ellipses");
  if (named > a->rank()) throw Error("index", str_cat(named, " indices for ", str(a->shape())));
  Tensor t = a;
  std::vector<Picked> tensors;
  int axis = 0;
  for (const Index& i : indices) {
    if (const auto* at = std::get_if<Dim>(&i)) t = t.select(axis, *at);
    else if (const auto* s = std::get_if<Slice>(&i)) t = sliced(t, axis++, *s);
    else if (std::holds_alternative<NewAxisIndex>(i)) t = t.unsqueeze(axis++);
    else if (std::holds_alternative<EllipsisIndex>(i)) axis += a->rank() - named;
    else tensors.push_back({axis++, std::get<Tensor>(i)});
  }
  return tensors.empty() ? t : picked(t, std::move(tensors));
}

}  // namespace lc
