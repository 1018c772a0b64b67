// Reading and writing by index, and sorting. Indices in the graph may lie out of range: they read zero and write
// nothing, whereas ONNX's must lie inside. Those that read are clamped, because the module selects zero itself; those
// that write go to one more row, which is cut off.
#include <algorithm>
#include <limits>

#include "lightcone/base/error.h"
#include "lightcone/onnx/write/translate.h"

namespace lc::onnx {
namespace {

using stablehlo::kDynamic;

Ref whole_number(Emitter& e, const std::string& element, std::int64_t v) {
  const DType d = dtype_of_element(element);
  std::vector<std::byte> bytes(size_of(d));
  is_float(d) ? store_f64(bytes.data(), d, 0, static_cast<double>(v)) : store_i64(bytes.data(), d, 0, v);
  return e.splat({true, element, {}}, std::move(bytes));
}

// The extent of an axis as a scalar, in the type of an index.
Ref extent_as(Emitter& e, Ref x, std::size_t axis, const std::string& element) {
  if (const std::int64_t n = e.shape(x)[axis]; n != kDynamic) return whole_number(e, element, n);
  return e.convert(e.value(e.squeeze(e.extent(x, axis), {0}), {true, "i64", {}}), element);
}

Ref clamped(Emitter& e, Ref index, Ref data, std::size_t axis) {
  const Type type = e.type(index);
  const Ref n = extent_as(e, data, axis, type.element);
  Ref last;
  if (const auto known = e.number(n)) last = whole_number(e, type.element, static_cast<std::int64_t>(*known) - 1);
  else last = e.elementwise("Sub", {n, whole_number(e, type.element, 1)}, {true, type.element, {}});
  const Ref below = e.elementwise("Min", {index, last}, type);
  return e.elementwise("Max", {below, whole_number(e, type.element, 0)}, type);
}

Extents others_of(std::size_t rank, const Extents& axes) {
  Extents all;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i)
    if (std::ranges::find(axes, i) == axes.end()) all.push_back(i);
  return all;
}

// An index with the axes `axes`, repeated to a shape; its extents are those of `like` along the other axes.
std::string repeated(Emitter& e, Ref index, const Extents& axes, const Extents& shape, Ref like) {
  Ref list = -1;
  if (is_dynamic(shape)) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const auto at = std::ranges::find(axes, static_cast<std::int64_t>(i));
      parts.push_back(at == axes.end() ? e.extent(like, i)
                                       : e.extent(index, static_cast<std::size_t>(at - axes.begin())));
    }
    list = e.value(e.node("Concat", parts, {{"axis", std::int64_t{0}}}),
                   {true, "i64", {static_cast<std::int64_t>(shape.size())}});
  }
  Type type = e.type(index);
  type.shape = shape;
  return e.name(e.spread(index, {axes.begin(), axes.end()}, type, list));
}

void gather(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const stablehlo::Attribute& numbers = attribute(o, "dimension_numbers");
  const Extents offset = field_of(numbers, "offset_dims"), batches = field_of(numbers, "operand_batching_dims");
  const std::int64_t axis = field_of(numbers, "collapsed_slice_dims").at(0);
  const Type& type = t.result_type(o);
  const Ref data = t.in(o, 0);
  Ref index = clamped(e, t.in(o, 1), data, static_cast<std::size_t>(axis));
  if (!batches.empty()) {
    const std::string full = repeated(e, index, others_of(type.shape.size(), offset), type.shape, data);
    return t.result(o, e.whole("GatherElements", data, type, {full}, {{"axis", axis}}));
  }
  const std::int64_t vector =
      std::ranges::find(numbers.fields, "index_vector_dim", [](const auto& f) { return f.first; })->second.integer;
  if (vector < std::ssize(e.shape(index)))  // the index is along an axis of its own
    index = e.value(e.squeeze(e.name(index), {vector}), {true, e.element(index), {}});
  const auto k = static_cast<std::int64_t>(e.shape(index).size());
  std::vector<std::size_t> permutation;  // from [before, index..., after] to the order of the result
  std::int64_t next_index = axis, next_offset = 0;
  for (std::int64_t i = 0; i < std::ssize(type.shape); ++i) {
    if (std::ranges::find(offset, i) == offset.end()) {
      permutation.push_back(static_cast<std::size_t>(next_index++));
    } else {
      if (next_offset == axis) next_offset += k;
      permutation.push_back(static_cast<std::size_t>(next_offset++));
    }
  }
  const Ref y = e.whole("Gather", data, type, {e.name(index)}, {{"axis", axis}});
  t.result(o, e.value(e.transpose(e.name(y), permutation), type));
}

void scatter(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  if (e.opset() < 18) throw Error("export_onnx", "sums and maxima by index need opset 18 (ScatterElements)");
  const stablehlo::Attribute& numbers = attribute(o, "scatter_dimension_numbers");
  const Extents windows = field_of(numbers, "update_window_dims");
  const std::int64_t axis = field_of(numbers, "inserted_window_dims").at(0);
  const auto at = static_cast<std::size_t>(axis);
  const Type& type = t.result_type(o);
  const Ref base = t.in(o, 0), updates = t.in(o, 2);
  Ref index = t.in(o, 1);
  const Type places = e.type(index);
  Type mask = places;
  mask.element = "i1";
  const Ref n = extent_as(e, base, at, places.element);
  const Ref negative = e.elementwise("Less", {index, whole_number(e, places.element, 0)}, mask);
  index = e.elementwise("Where", {negative, n, index}, places, {}, 1);
  index = e.elementwise("Min", {index, n}, places);
  const std::string full = repeated(e, index, others_of(e.shape(updates).size(), windows), e.shape(updates), updates);
  const std::string_view as = computed_as("Pad", type.element);
  Extents pads(2 * type.shape.size(), 0);
  pads[type.shape.size() + at] = 1;
  const std::string rows = e.node("Pad", {e.cast(e.name(base), type.element, as), e.list(pads)});
  const bool adds = combiner(o) == "stablehlo.add";
  const std::string written = e.node("ScatterElements", {rows, full, e.cast(e.name(updates), type.element, as)},
                                     {{"axis", axis}, {"reduction", std::string(adds ? "add" : "max")}});
  t.result(o, e.value(e.cast(e.slice(written, {0}, {-1}, {axis}, {1}), as, type.element), type));
}

// The keys of a sort of floats. TopK leaves the place of NaN open, so that NaN takes part as an infinity, and
// infinities as the largest number of a wider type. Doubles have none: their infinities tie with the largest double.
Ref sort_keys(Emitter& e, Ref x) {
  const DType stored = dtype_of_element(e.type(x).element);
  if (!is_float(stored)) return x;
  const Ref key = e.convert(x, is_narrow(stored) ? "f32" : "f64");
  const Type wide = e.type(key);
  Type mask = wide;
  mask.element = "i1";
  const DType d = dtype_of_element(wide.element);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto number = [&](double v) {
    std::vector<std::byte> bytes(size_of(d));
    store_f64(bytes.data(), d, 0, v);
    return e.splat({true, wide.element, {}}, bytes);
  };
  const double largest = d == DType::F32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  const Ref finite = e.elementwise("Min", {key, number(largest)}, wide);
  return e.elementwise("Where", {e.elementwise("IsNaN", {key}, mask), number(infinity), finite}, wide, {}, 1);
}

// Values and indices in order.
void sort(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const std::int64_t axis = attribute(o, "dimension").integer;
  const Block& body = o.regions.at(0);
  const bool descending = body.operations.at(0).operands.at(0) == body.arguments.at(1);
  const Ref x = t.in(o, 0);
  const Type type = e.type(x);
  if (type.element == "ui64") throw Error("export_onnx", "numbers of type u64 cannot be sorted in ONNX");
  const Ref key = sort_keys(e, x);
  const std::string_view as = computed_as("TopK", e.element(key));
  const std::string count = e.extent(x, static_cast<std::size_t>(axis));
  const auto both = e.nodes("TopK", {e.cast(e.name(key), e.element(key), as), count}, 2,
                            {{"axis", axis}, {"largest", std::int64_t{descending}}, {"sorted", std::int64_t{1}}});
  t.give(o.results.at(1), e.value(both[1], t.result_type(o, 1)));
  t.give(o.results.at(0), e.whole("GatherElements", x, type, {both[1]}, {{"axis", axis}}));
}

// The only axis along which a piece is smaller than the whole, or begins elsewhere than at 0.
std::size_t moving_axis(Translator& t, const Operation& o, const Extents& piece, std::size_t first_start) {
  const Emitter& e = t.emitter();
  const Extents& whole = e.shape(t.in(o, 0));
  std::optional<std::size_t> axis;
  const auto found = [&](std::size_t i) {
    if (axis && *axis != i) throw Error("export_onnx", "a piece that moves along two axes has no counterpart in ONNX");
    axis = i;
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto start = e.number(t.in(o, first_start + i));
    if (!start || *start != 0 || whole[i] != piece[i]) found(i);
  }
  for (std::size_t i = 0; i < whole.size() && !axis; ++i)
    if (whole[i] == kDynamic) found(i);
  return axis.value_or(0);
}

std::string start_of(Translator& t, const Operation& o, std::size_t operand) {  // i64 [1]
  Emitter& e = t.emitter();
  const Ref s = t.in(o, operand);
  if (const auto n = e.number(s)) return e.list({static_cast<std::int64_t>(*n)});
  return e.unsqueeze(e.cast(e.name(s), e.element(s), "i64"), {0});
}

void dynamic_slice(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Extents size = integers_of(o, "slice_sizes");
  const std::size_t axis = moving_axis(t, o, size, 1);
  const std::string begin = start_of(t, o, 1 + axis);
  const std::string at = e.list({static_cast<std::int64_t>(axis)});
  if (size[axis] == 1)
    return t.result(
        o, e.whole("Gather", t.in(o, 0), t.result_type(o), {begin}, {{"axis", static_cast<std::int64_t>(axis)}}));
  const std::string end = e.node("Add", {begin, e.list({size[axis]})});
  t.result(o, e.whole("Slice", t.in(o, 0), t.result_type(o), {begin, end, at}));
}

void dynamic_update_slice(Translator& t, const Operation& o) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  const Ref piece = t.in(o, 1);
  const std::size_t axis = moving_axis(t, o, e.shape(piece), 2);
  const std::string begin = start_of(t, o, 2 + axis);
  const std::string_view as = computed_as("Slice", type.element);
  const std::string whole = e.cast(e.name(t.in(o, 0)), type.element, as),
                    at = e.list({static_cast<std::int64_t>(axis)});
  const std::string before = e.node("Slice", {whole, e.list({0}), begin, at});
  const std::string end = e.node("Add", {begin, e.extent(piece, axis)});
  const std::string after = e.node("Slice", {whole, end, e.list({kEnd}), at});
  const std::string all = e.node("Concat", {before, e.cast(e.name(piece), type.element, as), after},
                                 {{"axis", static_cast<std::int64_t>(axis)}});
  t.result(o, e.value(e.cast(all, as, type.element), type));
}

constexpr Entry kIndexEntries[] = {
    {"stablehlo.gather", gather},
    {"stablehlo.dynamic_gather", gather},
    {"stablehlo.scatter", scatter},
    {"stablehlo.sort", sort},
    {"stablehlo.dynamic_slice", dynamic_slice},
    {"stablehlo.dynamic_update_slice", dynamic_update_slice},
};

}  // namespace

std::span<const Entry> index_entries() { return kIndexEntries; }

}  // namespace lc::onnx
