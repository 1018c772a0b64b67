// Writes the composites that StableHLO has operations for: gather, scatter, slice_scatter, argsort, random bits and
// barriers.
//
// An index in the graph has all axes of its operand. Along axes where it is constant, whole slices move; the others are
// batch axes. An index out of range reads 0 and writes nothing.
#include <algorithm>

#include "lightcone/composites/composites.h"
#include "lightcone/passes/barrier.h"
#include "lightcone/random/random_bits.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

using i64 = std::int64_t;

std::size_t axis_of(const Node& n) { return static_cast<std::size_t>(n.attributes.integer("axis")); }

// An index without the axes along which it is constant.
struct Places {
  ValueId index;
  std::vector<std::size_t> axes;  // the axes of the operand that the index has
  std::size_t at;                 // position of the indexed axis among them
};

Places places_of(Writer& w, const Edge& e, std::size_t axis) {
  Builder& b = w.builder();
  const Shape& shape = e.view.shape();
  const std::vector<Dim> symbols = index_symbols(shape);
  const View::Position p = e.view.locate(symbols);
  const auto read = p.offset.symbols(), padded = p.valid.symbols();
  Places r{0, {}, 0};
  Sizes extents;
  Shape some = shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto name = symbols[i].name();
    const bool may_be_empty = shape[i].bounds().lo == 0;  // an empty axis has no first element
    if (i == axis || may_be_empty || (name && (read.contains(*name) || padded.contains(*name)))) {
      if (i == axis) r.at = r.axes.size();
      r.axes.push_back(i), extents.push_back(b.sizes().of(shape[i]));
    } else {
      some[i] = 1;
    }
  }
  r.index = b.reshape(w.value({e.node, e.view.slice(Shape(shape.size(), 0), some)}), extents);
  const std::string& element = b.element(r.index);
  if (element != "i32" && element != "i64") r.index = b.convert(r.index, "i32");
  return r;
}

Sizes others(std::size_t rank, const std::vector<std::size_t>& axes) {
  Sizes all;
  for (std::size_t i = 0; i < rank; ++i)
    if (std::ranges::find(axes, i) == axes.end()) all.push_back(static_cast<i64>(i));
  return all;
}

// The batch axes of the operand and of the index.
struct Batches {
  Sizes operand, index;
};
Batches batches_of(const Places& p) {
  Batches b;
  for (std::size_t k = 0; k < p.axes.size(); ++k)
    if (k != p.at) b.operand.push_back(static_cast<i64>(p.axes[k])), b.index.push_back(static_cast<i64>(k));
  return b;
}

// Returns data[.., index, ..] for indices in range.
ValueId gathered(Builder& b, ValueId data, const Places& p) {
  const auto axis = static_cast<i64>(p.axes[p.at]);
  const Batches batches = batches_of(p);
  Sizes sizes = b.shape(data), to = sizes;
  for (std::size_t k = 0; k < p.axes.size(); ++k) {
    std::int64_t& piece = sizes[p.axes[k]];
    piece = b.sizes().of(min(b.sizes().dim(piece), 1));  // 0 for an open axis that is empty
    to[p.axes[k]] = b.shape(p.index)[k];
  }
  Attribute numbers;
  numbers.kind = Attribute::Kind::Struct, numbers.name = "gather";
  numbers.fields = {{"offset_dims", integers(others(to.size(), p.axes))}, {"collapsed_slice_dims", integers({axis})}};
  if (!batches.operand.empty()) {
    numbers.fields.push_back({"operand_batching_dims", integers(batches.operand)});
    numbers.fields.push_back({"start_indices_batching_dims", integers(batches.index)});
  }
  numbers.fields.push_back({"start_index_map", integers({axis})});
  numbers.fields.push_back({"index_vector_dim", whole(static_cast<i64>(p.axes.size()))});
  return b.gather(data, p.index, std::move(numbers), sizes, to);
}

// Returns base with `updates` combined at the indices; indices out of range are ignored.
ValueId scattered(Builder& b, ValueId base, const Places& p, ValueId updates, std::string_view combine) {
  const auto axis = static_cast<i64>(p.axes[p.at]);
  const Batches batches = batches_of(p);
  Attribute numbers;
  numbers.kind = Attribute::Kind::Struct, numbers.name = "scatter";
  numbers.fields = {{"update_window_dims", integers(others(b.shape(base).size(), p.axes))},
                    {"inserted_window_dims", integers({axis})}};
  if (!batches.operand.empty()) {
    numbers.fields.push_back({"input_batching_dims", integers(batches.operand)});
    numbers.fields.push_back({"scatter_indices_batching_dims", integers(batches.index)});
  }
  numbers.fields.push_back({"scatter_dims_to_operand_dims", integers({axis})});
  numbers.fields.push_back({"index_vector_dim", whole(static_cast<i64>(p.axes.size()))});
  std::vector<Block> body;
  body.push_back(b.combining(b.element(base), combine));
  return b.one(
      "stablehlo.scatter", {base, p.index, updates}, b.type(base),
      {{"scatter_dimension_numbers", numbers}, {"indices_are_sorted", flag(false)}, {"unique_indices", flag(false)}},
      std::move(body));
}

bool surely_inside(const Graph& g, NodeId index, const Dim& below) {
  const Node& n = g[index];
  if (is(n, builtin::argsort())) return true;
  return n.op == Op::Index && n.index.bounds().lo >= 0 && n.index.bounds().hi < below.bounds().lo;
}

// data[.., argsort(data), ..] is a by-product of the sort.
std::optional<ValueId> sorted(Writer& w, const Node& n) {
  const Node& order = w.graph()[n.in[1].node];
  const std::size_t axis = axis_of(n);
  if (!is(order, builtin::argsort()) || axis_of(order) != axis || !(order.in[0] == n.in[0])) return std::nullopt;
  const View& v = n.in[1].view;
  const std::vector<Dim> symbols = index_symbols(v.shape());
  const View::Position p = v.locate(symbols);
  if (!(p.valid == Dim(1)) || p.index.size() != symbols.size()) return std::nullopt;
  for (std::size_t i = 0; i < symbols.size(); ++i)
    if (i != axis && !(p.index[i] == symbols[i])) return std::nullopt;
  return write_view(w.builder(), w.results(n.in[1].node)[1], v);
}

ValueId gather(Writer& w, const Node& n) {
  Builder& b = w.builder();
  const Sizes shape = b.sizes(n.shape);
  const Dim& below = n.in[0].view.shape()[axis_of(n)];
  if (is_empty(shape) || below == Dim(0)) return b.splat(element_of(n.dtype), shape, 0);
  if (const auto s = sorted(w, n)) return *s;
  const Places p = places_of(w, n.in[1], axis_of(n));
  const ValueId found = gathered(b, w.value(n.in[0]), p);
  if (surely_inside(w.graph(), n.in[1].node, below)) return found;
  const ValueId in_range = b.both(b.compare(p.index, b.like_whole(p.index, 0), "GE"),
                                  b.compare(p.index, b.like_size(p.index, b.sizes().of(below)), "LT"));
  return b.select(b.broadcast(in_range, shape, p.axes), found, b.like(found, 0));
}

bool writes_nothing(const Node& n) { return product(n.shape) == Dim(0) || product(n.in[1].view.shape()) == Dim(0); }

ValueId scatter_add(Writer& w, const Node& n) {
  if (writes_nothing(n)) return w.value(n.in[0]);
  const Places p = places_of(w, n.in[1], axis_of(n));
  return scattered(w.builder(), w.value(n.in[0]), p, w.value(n.in[2]), "stablehlo.add");
}

// The last writer of an element wins. The order in which a scatter writes is unspecified, so the number of the last
// writer is computed first, as a maximum; then its value is gathered.
ValueId scatter(Writer& w, const Node& n) {
  if (writes_nothing(n)) return w.value(n.in[0]);
  Builder& b = w.builder();
  const Places p = places_of(w, n.in[1], axis_of(n));
  Places compact{p.index, {}, p.at};
  Sizes extents;
  const Sizes shape = b.sizes(n.shape);
  for (std::size_t k = 0; k < p.axes.size(); ++k) compact.axes.push_back(k), extents.push_back(shape[p.axes[k]]);
  const ValueId number = b.iota("i32", b.shape(p.index), p.at);
  const ValueId none = b.splat_whole("i32", extents, -1);
  const ValueId writer = scattered(b, none, compact, number, "stablehlo.maximum");
  const ValueId value = gathered(b, w.value(n.in[2]), {writer, p.axes, p.at});
  const ValueId written = b.compare(writer, b.like_whole(writer, 0), "GE");
  return b.select(b.broadcast(written, shape, p.axes), value, w.value(n.in[0]));
}

ValueId slice_scatter(Writer& w, const Node& n) {
  Builder& b = w.builder();
  std::vector<ValueId> operands{w.value(n.in[0]), w.value(n.in[1])};
  if (is_empty(b.shape(operands[1]))) return operands[0];
  const i64 start = b.sizes().of(n.attributes.dim("start"));
  for (std::size_t i = 0; i < n.shape.size(); ++i)
    operands.push_back(i == axis_of(n) ? b.convert(b.scalar(start), "i32") : b.splat_whole("i32", {}, 0));
  const Type type = b.type(operands[0]);
  return b.one("stablehlo.dynamic_update_slice", std::move(operands), type);
}

// Returns the order and the sorted values. NaN is largest, and equal elements keep their order.
std::vector<ValueId> argsort(Writer& w, const Node& n) {
  Builder& b = w.builder();
  const ValueId x = w.value(n.in[0]);
  const std::size_t axis = axis_of(n);
  const Type type = b.type(x), order{true, "i64", type.shape};
  if (is_empty(type.shape)) return {b.splat_whole("i64", type.shape, 0), x};
  const bool descending = n.attributes.integer("descending") != 0;
  const Type scalar{.element = type.element}, place{.element = "i64"};
  std::vector<Block> body;
  body.push_back(b.block({scalar, scalar, place, place}, [&](const std::vector<ValueId>& v) {
    const ValueId small = v[descending ? 1 : 0], large = v[descending ? 0 : 1];
    const ValueId less = b.compare(small, large, "LT");
    if (!is_float_element(b.element(small))) return std::vector{less};
    const ValueId to_nan = b.both(b.compare(large, large, "NE"), b.compare(small, small, "EQ"));
    return std::vector{b.binary("stablehlo.or", less, to_nan)};
  }));
  const auto sorted =
      b.operation("stablehlo.sort", {x, b.iota("i64", type.shape, axis)}, {type, order},
                  {{"dimension", whole(static_cast<i64>(axis))}, {"is_stable", flag(true)}}, std::move(body));
  return {sorted[1], sorted[0]};
}

struct Entry {
  const CompositeRef& composite;
  std::vector<ValueId> (*write)(Writer& w, const Node& n);
};
// Returns the entry of a composite that has one, or null: its definition, or its loop, is written instead.
const Entry* entry_of(const Node& n) {
  static const Entry entries[] = {
      {builtin::gather(), [](Writer& w, const Node& n) { return std::vector{gather(w, n)}; }},
      {builtin::scatter(), [](Writer& w, const Node& n) { return std::vector{scatter(w, n)}; }},
      {builtin::scatter_add(), [](Writer& w, const Node& n) { return std::vector{scatter_add(w, n)}; }},
      {builtin::slice_scatter(), [](Writer& w, const Node& n) { return std::vector{slice_scatter(w, n)}; }},
      {builtin::argsort(), argsort},
      {builtin::random_bits(),
       [](Writer& w, const Node& n) { return std::vector{write_random_bits(w.builder(), n, w.value(n.in[0]))}; }},
      {barrier(),
       [](Writer& w, const Node& n) {
         return std::vector{w.builder().unary("stablehlo.optimization_barrier", w.value(n.in[0]))};
       }},
  };
  for (const Entry& e : entries)
    if (is(n, e.composite)) return &e;
  return nullptr;
}

}  // namespace

bool is_written(const Node& n) { return n.op != Op::Composite || entry_of(n) || n.composite->loop; }

std::vector<ValueId> write_composite(Writer& w, NodeId id) {
  const Node& n = w.graph()[id];
  if (const Entry* e = entry_of(n)) return e->write(w, n);
  return write_loop(w, n);
}

}  // namespace lc::stablehlo
