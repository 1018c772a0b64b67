#include "lightcone/stablehlo/write/products.h"

#include <algorithm>
#include <array>

#include "lightcone/lowering/factors.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

using Items = std::vector<Placed::Item>;
using lowering::Factors;

// ---- matching --------------------------------------------------------------------------------------------------

// Reads halves that were widened for the product directly: their products are exact in f32.
void look_through_widening(const Graph& g, Factors& f) {
  const auto narrow = [&](const Edge& e) -> const Node* {
    const Node& n = g[e.node];
    const bool widens = n.op == Op::Contiguous && n.dtype == DType::F32 && n.in[0].view.identity();
    return widens && is_narrow(g[n.in[0].node].dtype) ? &n : nullptr;
  };
  const Node *a = narrow(f.edge[0]), *b = narrow(f.edge[1]);
  if (!a || !b || g[a->in[0].node].dtype != g[b->in[0].node].dtype) return;
  f.edge[0].node = a->in[0].node, f.edge[1].node = b->in[0].node;
}

// Sets the operand with one axis for each loop that it depends on.
void lay_out(const Graph& g, const Factors& f, int side, Product& p, View::Position& at) {
  const Node& sum = g[f.sum];
  View v = f.edge[side].view.then(sum.in[0].view);
  std::vector<int> order;
  for (int i = 0; i <= static_cast<int>(sum.shape.size()); ++i)
    if (i != sum.axis) order.push_back(i);
  order.push_back(sum.axis);
  v = v.permute(order);
  const auto read = f.at[side].offset.symbols(), padded = f.at[side].valid.symbols();
  Shape begin(v.shape().size(), 0), extent = v.shape();
  at = {};
  p.shape[side] = {};
  for (std::size_t i = 0; i < extent.size(); ++i) {
    const auto name = f.symbols[i].name();
    const bool may_be_empty = extent[i].bounds().lo == 0;  // an empty axis has no first element
    if (!name || (!may_be_empty && !read.contains(*name) && !padded.contains(*name))) {
      extent[i] = 1;
      continue;
    }
    p.shape[side].push_back(extent[i]);
    at.index.push_back(f.symbols[i]);
  }
  at.valid = 1;
  p.operand[side] = {f.edge[side].node, v.slice(begin, extent)};
}

// Returns how an operand can be read: directly (no windows), through windows, or not at all (nullopt).
std::optional<std::vector<Window>> windows(const SizeTable& sizes, const Graph& g, const Factors& f, const Readings& r,
                                           int side) {
  const bool unfolded = unfolds(f.edge[side].view) || unfolds(g[f.sum].in[0].view);
  const std::size_t summed = f.symbols.size() - 1;
  const auto other = r.operands[1 - side].loops();
  const auto own = [&](std::size_t place) { return std::ranges::find(other, place) == other.end(); };
  auto all =
      windows_of(sizes, r.operands[side], r.loops, summed, [&](std::size_t place) { return unfolded && own(place); });
  if (all && !std::ranges::all_of(*all, own, &Window::place)) return std::nullopt;
  return all;
}

}  // namespace

std::optional<Product> match_product(SizeTable& sizes, const Graph& g, NodeId id) {
  if (g[id].op != Op::SumReduce || g[id].dtype == DType::Bool) return std::nullopt;
  auto f = lowering::factors_of_any_type(g, id);
  if (!f || product(g[g[id].in[0].node].shape) == Dim(0)) return std::nullopt;
  look_through_widening(g, *f);
  Product p;
  std::vector<View::Position> at{f->at[0], f->at[1]};
  for (int side = 0; side < 2; ++side) {
    p.shape[side] = g[f->edge[side].node].shape;
    p.operand[side] = {f->edge[side].node, View(p.shape[side])};
  }
  std::array<bool, 2> laid_out{};
  const auto lay_out_side = [&](int side) {
    lay_out(g, *f, side, p, at[side]);
    laid_out[side] = true;
  };
  for (;;) {
    auto r = read_in_loops(sizes, f->symbols, at, p.shape);
    if (!r) {
      int side = laid_out[0] ? 1 : 0;
      for (int k = 0; k < 2; ++k)
        if (!laid_out[k] && !read_in_loops(sizes, f->symbols, {at[k]}, {&p.shape[k], 1})) side = k;
      lay_out_side(side);
      continue;
    }
    p.readings = std::move(*r);
    // Padding times NaN is NaN: it is written out.
    if (is_float(g[id].dtype) && (p.readings.operands[0].nothing || p.readings.operands[1].nothing))
      return std::nullopt;
    const auto plain = [&](int side) { return is_plain(p.readings.operands[side], p.readings.loops); };
    for (const int side : {0, 1}) {
      if (laid_out[side] || !plain(1 - side)) continue;
      auto w = windows(sizes, g, *f, p.readings, side);
      if (!w || w->empty()) continue;
      p.image = side, p.windows = std::move(*w);
      return p;
    }
    if (plain(0) && plain(1)) return p;
    lay_out_side(plain(0) ? 1 : 0);
  }
}

// ---- writing ---------------------------------------------------------------------------------------------------

namespace {

Attribute precision(Precision p) {
  Attribute list;
  list.kind = Attribute::Kind::List;
  const std::string_view word = p == Precision::Highest ? "HIGHEST" : p == Precision::High ? "HIGH" : "DEFAULT";
  list.list.assign(2, enumerated("precision", word));
  return list;
}

// Sums of halves are f32.
DType sum_type(DType t) { return is_narrow(t) ? DType::F32 : t; }

class ProductWriter {
 public:
  ProductWriter(Writer& w, const Node& n, const Product& p)
      : w_(w), b_(w.builder()), n_(n), p_(p), loops_(p.readings.loops), summed_(n.shape.size()) {}

  ValueId write() {
    for (int side = 0; side < 2; ++side)
      if (reading(side).nothing) return b_.splat(element_of(n_.dtype), b_.sizes(n_.shape), 0);
    Placed y = p_.image ? convolution(*p_.image) : dot();
    Items order;
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (!is_summed(k)) order.push_back({false, k});
    const ValueId out = b_.reshape(permute_and_broadcast(b_, y, order, loops_), b_.sizes(n_.shape));
    return b_.convert(out, element_of(n_.dtype));
  }

 private:
  const Reading& reading(int side) const { return p_.readings.operands[side]; }
  bool is_summed(std::size_t loop) const { return loops_.from[loop] >= summed_; }
  bool reads(int side, std::size_t loop) const {
    const auto all = reading(side).loops();
    return std::ranges::find(all, loop) != all.end();
  }
  ValueId operand(int side) { return b_.reshape(w_.value(p_.operand[side]), b_.sizes(p_.shape[side])); }
  std::int64_t extent(const Items& items) const {
    Sizes all;
    for (const Placed::Item& i : items) all.push_back(loops_.extents[i.at]);
    return b_.sizes().product(all);
  }
  static Items both(Items a, const Items& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  Type result(const Sizes& shape) const { return {true, std::string(element_of(sum_type(n_.dtype))), shape}; }
  AttributeList with_precision(AttributeList a) const {
    if (is_float(n_.dtype)) a.push_back({"precision_config", precision(w_.options().products)});
    return a;
  }

  // Returns the operand with an axis for each summed loop, also for those along which it is constant.
  Placed placed(int side) {
    Placed x = place(b_, operand(side), reading(side), loops_);
    Items order = x.items;
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (is_summed(k) && !reads(side, k)) order.push_back({false, k});
    return {permute_and_broadcast(b_, x, order, loops_), order};
  }

  Items free(const Placed& x, int other) const {
    Items all;
    for (const Placed::Item& i : x.items)
      if (!is_summed(i.at) && !reads(other, i.at)) all.push_back(i);
    return all;
  }

  Placed dot() {
    Placed x[2] = {placed(0), placed(1)};
    Items batch;
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (!is_summed(k) && reads(0, k) && reads(1, k)) batch.push_back({false, k});
    const auto ordered = [&](int first) {
      Items all = batch;
      for (const int side : {first, 1 - first})
        for (const Placed::Item& i : free(x[side], 1 - side)) all.push_back(i);
      return all;
    };
    const auto sorted = [](const Items& all) { return std::ranges::is_sorted(all, {}, &Placed::Item::at); };
    const int lhs = !sorted(ordered(0)) && sorted(ordered(1)) ? 1 : 0;
    Placed y{0, ordered(lhs)};
    Sizes shape;
    for (const Placed::Item& i : y.items) shape.push_back(loops_.extents[i.at]);
    Attribute numbers;
    numbers.kind = Attribute::Kind::Struct, numbers.name = "dot";
    const auto axes_of = [&](int side, bool summed) {
      Sizes axes;
      for (std::size_t k = 0; k < loops_.size(); ++k)
        if (is_summed(k) == summed && (summed || (reads(0, k) && reads(1, k)))) {
          const Items& items = x[side].items;
          axes.push_back(std::ranges::find(items, Placed::Item{false, k}) - items.begin());
        }
      return integers(axes);
    };
    if (!batch.empty()) {
      numbers.fields.push_back({"lhs_batching_dimensions", axes_of(lhs, false)});
      numbers.fields.push_back({"rhs_batching_dimensions", axes_of(1 - lhs, false)});
    }
    numbers.fields.push_back({"lhs_contracting_dimensions", axes_of(lhs, true)});
    numbers.fields.push_back({"rhs_contracting_dimensions", axes_of(1 - lhs, true)});
    y.value = b_.one("stablehlo.dot_general", {x[lhs].value, x[1 - lhs].value}, result(shape),
                     with_precision({{"dot_dimension_numbers", numbers}}));
    return y;
  }

  bool is_window(std::size_t loop) const {
    return std::ranges::any_of(p_.windows, [&](const Window& w) { return w.place == loop || w.tap == loop; });
  }

  // Writes a convolution:
  //   image [batch, groups * in, places...], filters [groups * out, in, taps...] -> [batch, groups * out, places...]
  Placed convolution(int image) {
    const int filters = 1 - image;
    Items batch, groups, in, out;
    for (std::size_t k = 0; k < loops_.size(); ++k) {
      if (is_window(k)) continue;
      const bool x = reads(image, k), f = reads(filters, k);
      if (is_summed(k)) in.push_back({false, k});
      else if (x) (f ? groups : batch).push_back({false, k});
      else if (f) out.push_back({false, k});
    }
    const ValueId x = image_of(image, batch, groups, in), f = filters_of(filters, groups, out, in);
    Sizes shape{extent(batch), extent(both(groups, out))}, apart;
    Placed y;
    for (const Items* items : {&batch, &groups, &out}) y.items.insert(y.items.end(), items->begin(), items->end());
    std::vector<std::size_t> reversed;
    for (const Window& w : p_.windows) {
      shape.push_back(loops_.extents[w.place]);
      if (w.places_reversed) reversed.push_back(y.items.size());
      y.items.push_back({false, w.place});
    }
    for (const Placed::Item& i : y.items) apart.push_back(loops_.extents[i.at]);
    y.value = b_.one("stablehlo.convolution", {x, f}, result(shape), attributes(extent(groups)));
    y.value = b_.reverse(b_.reshape(y.value, apart), reversed);
    return y;
  }

  ValueId image_of(int side, const Items& batch, const Items& groups, const Items& in) {
    std::vector<Kept> kept;
    Items order;
    for (const Items* items : {&batch, &groups, &in}) order.insert(order.end(), items->begin(), items->end());
    Sizes shape{extent(batch), extent(both(groups, in))};
    for (const Window& w : p_.windows) {
      const bool empty = w.inside.begin == w.inside.end;  // only padding, which is then written
      kept.push_back({w.axis, w.inside.begin, w.inside.end, empty ? w.inside.low : 0, 0});
      order.push_back({true, w.axis});
      shape.push_back(empty ? w.inside.low : w.inside.end - w.inside.begin);
    }
    const Placed x = place(b_, operand(side), reading(side), loops_, kept);
    return b_.reshape(permute_and_broadcast(b_, x, order, loops_), shape);
  }

  ValueId filters_of(int side, const Items& groups, const Items& out, const Items& in) {
    Items order;
    for (const Items* items : {&groups, &out, &in}) order.insert(order.end(), items->begin(), items->end());
    Sizes shape{extent(groups) * extent(out), extent(in)};
    std::vector<std::size_t> reversed;
    for (const Window& w : p_.windows) {
      if (w.taps_reversed) reversed.push_back(shape.size());
      order.push_back({false, w.tap});
      shape.push_back(loops_.extents[w.tap]);
    }
    const Placed f = place(b_, operand(side), reading(side), loops_);
    return b_.reverse(b_.reshape(permute_and_broadcast(b_, f, order, loops_), shape), reversed);
  }

  AttributeList attributes(std::int64_t groups) const {
    const std::size_t n = p_.windows.size();
    Sizes stride, dilation, padding, spatial;
    for (std::size_t k = 0; k < n; ++k) {
      const Window& w = p_.windows[k];
      const bool empty = w.inside.begin == w.inside.end;
      stride.push_back(w.stride), dilation.push_back(w.dilation), spatial.push_back(static_cast<std::int64_t>(2 + k));
      padding.push_back(empty ? 0 : w.inside.low), padding.push_back(empty ? 0 : w.inside.high);
    }
    Attribute numbers;
    numbers.kind = Attribute::Kind::Struct, numbers.name = "conv";
    for (const auto& [operand, first, second] :
         {std::array{"input", "batch", "feature"}, std::array{"kernel", "output_feature", "input_feature"},
          std::array{"output", "batch", "feature"}}) {
      numbers.fields.push_back({str_cat(operand, "_", first, "_dimension"), whole(0)});
      numbers.fields.push_back({str_cat(operand, "_", second, "_dimension"), whole(1)});
      numbers.fields.push_back({str_cat(operand, "_spatial_dimensions"), integers(spatial)});
    }
    return with_precision({{"window_strides", integers(stride)},
                           {"padding", dense_pairs(padding)},
                           {"lhs_dilation", integers(Sizes(n, 1))},
                           {"rhs_dilation", integers(dilation)},
                           {"window_reversal", bools(std::vector<bool>(n, false))},
                           {"dimension_numbers", numbers},
                           {"feature_group_count", whole(groups)},
                           {"batch_group_count", whole(1)}});
  }

  Writer& w_;
  Builder& b_;
  const Node& n_;
  const Product& p_;
  const Loops& loops_;
  std::size_t summed_;  // index of the first summed loop
};

}  // namespace

ValueId write_product(Writer& w, const Node& n, const Product& p) { return ProductWriter(w, n, p).write(); }

}  // namespace lc::stablehlo
