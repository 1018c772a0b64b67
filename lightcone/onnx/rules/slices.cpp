// Parts of tensors, and tensors of parts.
#include <algorithm>
#include <limits>

#include "lightcone/onnx/parts/quantized.h"
#include "lightcone/ops/indexing/indexing.h"

namespace lc::onnx {
namespace {

Values concat_(Call& c) {
  std::vector<Tensor> all;
  for (std::size_t k = 0; k < c.in.size(); ++k) all.push_back(c.x(k));
  if (all.empty()) c.refuse("has no operands");
  const int rank = all[0].rank(), axis = c.axis("axis", c.opset < 4 ? 1 : 0, rank);
  for (const Tensor& t : all) {
    if (t.rank() != rank) c.refuse("joins tensors with different numbers of axes");
    if (t.dtype() != all[0].dtype()) c.refuse("joins tensors of different types");
    for (int k = 0; k < rank; ++k)
      if (k != axis) c.importer.same_extent(all[0].extent(k), t.extent(k));
  }
  std::vector<Tensor> parts;
  for (const Tensor& t : all)
    if (!(t.extent(axis) == Dim(0))) parts.push_back(t);
  if (parts.empty()) return {all[0]};
  return {parts.size() == 1 ? parts[0] : concat(parts, axis)};
}

Values split_(Call& c) {
  const Tensor x = c.x();
  const int axis = c.axis("axis", 0, x.rank());
  std::vector<Dim> sizes;
  if (c.opset >= 13 && c.has(1)) sizes = c.dims(1);
  else if (c.has_attribute("split"))
    for (const std::int64_t n : c.integers("split")) sizes.push_back(n);
  const auto parts = static_cast<std::int64_t>(c.integer("num_outputs", static_cast<std::int64_t>(c.results())));
  if (sizes.empty()) {
    if (parts < 1 || parts != static_cast<std::int64_t>(c.results()))
      c.refuse(str_cat("has ", c.results(), " results and num_outputs of ", parts));
    const Dim n = x.extent(axis), each = (n + Dim(parts - 1)) / Dim(parts);
    for (std::int64_t k = 0; k + 1 < parts; ++k) sizes.push_back(each);
    sizes.push_back(n - each * Dim(parts - 1));
  }
  Values r;
  Dim at = 0;
  for (const Dim& n : sizes) {
    r.push_back(narrow(x, axis, at, n));
    at = at + n;
  }
  if (!(at == x.extent(axis))) c.importer.same_extent(at, x.extent(axis));
  return r;
}

// A bound of a slice within [least, most], counting from the end if it is negative.
Dim bound(const Dim& given, const Dim& n, std::int64_t least, const Dim& most) {
  const auto c = given.constant();
  if (!c) {
    if (given.bounds().hi < 0) return max(n + given, least);
    return given == most ? most : min(given, most);
  }
  if (*c < 0) {
    if (*c < -(std::int64_t{1} << 40)) return least;
    const Dim at = n + given;
    return at.bounds().lo >= least ? at : max(at, least);
  }
  if (const auto known = most.constant()) return std::min(*c, *known);
  return most.bounds().hi <= *c ? most : most.bounds().lo >= *c ? Dim(*c) : min(given, most);
}

Values slice_(Call& c) {
  Tensor x = c.x();
  std::vector<Dim> starts, ends;
  Integers axes, steps;
  if (c.opset >= 10) {
    starts = c.dims(1), ends = c.dims(2);
    if (c.has(3)) axes = c.integers(3);
    if (c.has(4)) steps = c.integers(4);
  } else {
    for (const std::int64_t v : c.integers("starts")) starts.push_back(v);
    for (const std::int64_t v : c.integers("ends")) ends.push_back(v);
    axes = c.integers("axes", {});
  }
  if (axes.empty())
    for (std::size_t k = 0; k < starts.size(); ++k) axes.push_back(static_cast<std::int64_t>(k));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.refuse("has starts, ends, axes and steps of different lengths");
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const int axis = c.wrap(axes[k], x.rank());
    const Dim n = x.extent(axis);
    const std::int64_t step = steps[k];
    if (step == 0) c.refuse("has a step of 0");
    if (step == std::numeric_limits<std::int64_t>::min()) c.refuse("has a step that is too large");
    if (step > 0) {
      const Dim begin = bound(starts[k], n, 0, n), end = bound(ends[k], n, 0, n);
      const bool ordered = (end - begin).bounds().lo >= 0;
      x = x.slice(axis, begin, ordered ? end : max(begin, end), step);
    } else {  // from `begin` down to behind `end`, as a slice of the reversed axis
      const Dim last = n - Dim(1);
      const Dim begin = bound(starts[k], n, -1, last), end = bound(ends[k], n, -1, last);
      const Dim first = last - begin, behind = last - end;
      const bool ordered = (behind - first).bounds().lo >= 0;
      x = x.flip(axis).slice(axis, first, ordered ? behind : max(first, behind), -step);
    }
  }
  return {x};
}

// Indices, of which negative ones count from the end.
Tensor wrapped(Call& c, const Tensor& index, const Dim& n) {
  const Tensor i = index.to(DType::I64);
  return where(i < 0, i + c.graph().index({}, n), i);
}

Values gather_(Call& c) {
  const Tensor x = c.x(0), index = c.x(1);
  const int axis = c.axis("axis", 0, x.rank());
  const Dim n = x.extent(axis);
  if (const auto known = c.known(1)) {  // elements at fixed positions are views
    std::vector<Dim> at;
    for (const Dim& d : *known) at.push_back(d.bounds().hi < 0 ? n + d : d);
    const bool inside =
        std::ranges::all_of(at, [&](const Dim& d) { return d.bounds().lo >= 0 && !provably_below(n - Dim(1), d); });
    if (!inside) c.refuse("has an index out of range");
    if (index.rank() == 0) return {x.select(axis, at[0])};
    if (index.rank() == 1 && !at.empty()) {
      bool adjacent = true;
      for (std::size_t k = 1; k < at.size(); ++k)
        adjacent = adjacent && at[k] == at[0] + Dim(static_cast<std::int64_t>(k));
      if (adjacent) return {narrow(x, axis, at[0], static_cast<std::int64_t>(at.size()))};
    }
  }
  const Tensor at = wrapped(c, index, n);
  const auto codes = c.value(0).codes;
  const bool by_codes = codes && codes->scale.rank() == 0;
  if (x.rank() == 2 && axis == 0 && !by_codes) return {embedding(at, x)};
  const Shape s = x.shape(), rows = at.shape();
  Shape to(s.begin(), s.begin() + axis);
  to.insert(to.end(), rows.begin(), rows.end());
  to.insert(to.end(), s.begin() + axis + 1, s.end());
  const auto selected = [&](const Tensor& of) {
    return index_select(of, axis, at.reshape({product(rows)})).reshape(to);
  };
  if (!by_codes) return {selected(x)};
  // rows of a quantised table are read as bytes, and only they become numbers
  const Tensor bytes = selected(codes->bytes);
  Value v(dequantized(c, bytes, codes->scale, codes->zero, x.dtype()));
  v.codes = std::make_shared<const Value::Codes>(Value::Codes{bytes, codes->scale, codes->zero, 0});
  return {v};
}
Values gather_elements(Call& c) {
  const Tensor x = c.x(0);
  const int axis = c.axis("axis", 0, x.rank());
  return {gather(x, axis, wrapped(c, c.x(1), x.extent(axis)))};
}

Values pad_(Call& c) {
  Tensor x = c.x();
  std::vector<Dim> pads;
  double value = 0;
  if (c.opset >= 11) {
    pads = c.dims(1);
    if (c.has(2)) value = c.number(2);
  } else {
    for (const std::int64_t v : c.integers(c.opset >= 2 ? "pads" : "paddings")) pads.push_back(v);
    value = c.number("value", 0);
  }
  std::vector<int> axes = all_axes(x.rank());
  if (c.has(3)) {
    axes.clear();
    for (const std::int64_t a : c.integers(3)) axes.push_back(c.wrap(a, x.rank()));
  }
  if (pads.size() != 2 * axes.size()) c.refuse("needs two numbers for each axis");
  const std::string_view mode = c.text("mode", "constant");
  for (std::size_t k = 0; k < axes.size(); ++k) {
    Dim before = pads[k], after = pads[axes.size() + k];
    const int axis = axes[k];
    const Dim cut_before = before.bounds().hi < 0 ? Dim(0) - before : Dim(0);
    const Dim cut_after = after.bounds().hi < 0 ? Dim(0) - after : Dim(0);
    if (!(cut_before == Dim(0)) || !(cut_after == Dim(0))) x = x.slice(axis, cut_before, x.extent(axis) - cut_after);
    before = max(before, 0), after = max(after, 0);
    if (before == Dim(0) && after == Dim(0)) continue;
    if (mode != "constant") {
      const PadMode m = mode == "reflect" ? PadMode::Reflect : mode == "edge" ? PadMode::Replicate : PadMode::Circular;
      if (m == PadMode::Circular && mode != "wrap") c.refuse("has a mode that is not constant, reflect, edge or wrap");
      const auto n = [&](const Dim& d) { return narrow_int(c, fixed(c, d, "padding"), "padding"); };
      x = pad(x, axis, n(before), n(after), m);
      continue;
    }
    const Tensor inside = full(x, x.shape(), 1, DType::Bool).pad(axis, before, after);
    x = x.pad(axis, before, after);
    if (value != 0) x = where(inside, x, full_like(x, value));
  }
  return {x};
}

Values trilu(Call& c) {
  const Tensor x = c.x();
  if (x.rank() < 2) c.refuse("needs matrices");
  const bool upper = c.flag("upper", true);
  const Dim k = c.has(1) ? c.dim(1) : Dim(0);
  const int r = x.rank() - 2;
  const Dim i = Dim::index(r, x.extent(r)), j = Dim::index(r + 1, x.extent(r + 1));
  const Dim keep = upper ? Dim(1) - less(j, i + k) : Dim(1) - less(i + k, j);
  return {where(c.graph().index(x.shape(), keep, DType::Bool), x, zeros_like(x))};
}

}  // namespace

void add_slices(Operators& t) {
  const Operator rows[] = {
      {"", "Concat", 1, concat_, "cat"},
      {"", "Gather", 1, gather_, "views where the indices are known, else embedding or index_select"},
      {"", "GatherElements", 11, gather_elements, "gather"},
      {"", "Pad", 1, pad_, "pad"},
      {"", "Slice", 1, slice_, "slice, flip"},
      {"", "Split", 1, split_, "narrow"},
      {"", "Trilu", 14, trilu, "tril, triu"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
