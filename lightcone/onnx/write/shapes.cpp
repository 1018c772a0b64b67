// Views: reshapes, transposes, broadcasts, slices, padding, and extents as numbers.
#include <algorithm>
#include <limits>

#include "lightcone/base/error.h"
#include "lightcone/onnx/write/translate.h"

namespace lc::onnx {
namespace {

constexpr std::int64_t kBegin = std::numeric_limits<std::int64_t>::min();

// A splat stays one in any shape.
bool still_splat(Translator& t, const Operation& o, Ref list) {
  Emitter& e = t.emitter();
  const Ref x = t.in(o, 0);
  if (!e.is_splat(x)) return false;
  t.result(o, e.spread(x, {}, t.result_type(o), list));
  return true;
}

void reshape(Translator& t, const Operation& o) {
  const Ref list = o.operands.size() > 1 ? t.in(o, 1) : -1;
  if (!still_splat(t, o, list)) t.result(o, t.reshape(t.in(o, 0), t.result_type(o), list));
}

void transpose(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Extents p = integers_of(o, "permutation");
  if (e.is_splat(t.in(o, 0)) && !is_dynamic(t.result_type(o).shape) && still_splat(t, o, -1)) return;
  t.result(o, t.transpose(t.in(o, 0), {p.begin(), p.end()}, t.result_type(o)));
}

void broadcast(Translator& t, const Operation& o) {
  const Extents axes = integers_of(o, "broadcast_dimensions");
  t.result(o, t.emitter().spread(t.in(o, 0), {axes.begin(), axes.end()}, t.result_type(o),
                                 o.operands.size() > 1 ? t.in(o, 1) : -1));
}

void slice(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Ref x = t.in(o, 0);
  const Extents begin = integers_of(o, "start_indices"), end = integers_of(o, "limit_indices"),
                step = integers_of(o, "strides");
  if (e.is_splat(x) && !is_dynamic(t.result_type(o).shape) && still_splat(t, o, -1)) return;
  Extents b, n, axes, s;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (begin[i] == 0 && end[i] == e.shape(x)[i] && step[i] == 1) continue;
    b.push_back(begin[i]), n.push_back(end[i]), s.push_back(step[i]), axes.push_back(static_cast<std::int64_t>(i));
  }
  t.result(o, e.whole("Slice", x, t.result_type(o), {e.list(b), e.list(n), e.list(axes), e.list(s)}));
}

void dynamic_slice_of(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  Extents axes;
  for (std::size_t i = 0; i < t.result_type(o).shape.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  t.result(o, e.whole("Slice", t.in(o, 0), t.result_type(o),
                      {e.name(t.in(o, 1)), e.name(t.in(o, 2)), e.list(axes), e.name(t.in(o, 3))}));
}

void padded(Translator& t, const Operation& o, const std::string& pads) {
  Emitter& e = t.emitter();
  const std::string_view as = computed_as("Pad", e.element(t.in(o, 0)));
  const std::string value = e.cast(e.name(t.in(o, 1)), e.element(t.in(o, 1)), as);
  t.result(o, e.whole("Pad", t.in(o, 0), t.result_type(o), {pads, value}));
}

void pad(Translator& t, const Operation& o) {
  Extents pads = integers_of(o, "edge_padding_low");
  const Extents high = integers_of(o, "edge_padding_high");
  pads.insert(pads.end(), high.begin(), high.end());
  padded(t, o, t.emitter().list(pads));
}

void dynamic_pad(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  padded(t, o, e.node("Concat", {e.name(t.in(o, 2)), e.name(t.in(o, 3))}, {{"axis", std::int64_t{0}}}));
}

void reverse(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Extents axes = integers_of(o, "dimensions"), back(axes.size(), -1), end(axes.size(), kBegin);
  t.result(o, e.whole("Slice", t.in(o, 0), t.result_type(o), {e.list(back), e.list(end), e.list(axes), e.list(back)}));
}

// Joined constants of one axis are one constant: lists of extents.
bool joined_constants(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  if (type.shape.size() != 1 || is_dynamic(type.shape)) return false;
  std::vector<std::byte> all;
  for (std::size_t k = 0; k < o.operands.size(); ++k) {
    const Ref x = t.in(o, k);
    if (!e.is_splat(x) || type.element != "i64") return false;
    const std::vector<std::byte>& one = e.element_of_splat(x);
    for (std::int64_t n = 0; n < e.shape(x)[0]; ++n) all.insert(all.end(), one.begin(), one.end());
  }
  t.result(o, e.value(e.constant(type.element, type.shape, std::move(all)), type));
  return true;
}

void concatenate(Translator& t, const Operation& o) {
  if (joined_constants(t, o)) return;
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  const std::string_view as = computed_as("Concat", type.element);
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < o.operands.size(); ++k) parts.push_back(e.cast(e.name(t.in(o, k)), type.element, as));
  const std::string y = e.node("Concat", std::move(parts), {{"axis", attribute(o, "dimension").integer}});
  t.result(o, e.value(e.cast(y, as, type.element), type));
}

void extent(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const auto axis = static_cast<std::size_t>(attribute(o, "dimension").integer);
  const std::string n = e.squeeze(e.extent(t.in(o, 0), axis), {0});
  const Ref r = e.value(e.cast(n, "i64", t.result_type(o).element), t.result_type(o));
  t.extents[r] = n;
  t.result(o, r);
}

void iota(Translator& t, const Operation& o) {
  constexpr std::int64_t kFew = 1 << 16;
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  const auto axis = static_cast<std::size_t>(attribute(o, "iota_dimension").integer);
  const std::int64_t n = type.shape[axis];
  const DType d = dtype_of_element(type.element);
  Ref row;
  if (n != stablehlo::kDynamic && n <= kFew) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(n) * size_of(d));
    for (std::int64_t k = 0; k < n; ++k)
      is_float(d) ? store_f64(bytes.data(), d, static_cast<std::size_t>(k), static_cast<double>(k))
                  : store_i64(bytes.data(), d, static_cast<std::size_t>(k), k);
    row = e.value(e.constant(type.element, {n}, std::move(bytes)), {true, type.element, {n}});
  } else {
    const std::string count = n != stablehlo::kDynamic
                                  ? e.scalar(n)
                                  : e.node("Gather", {e.name(t.in(o, 0)), e.scalar(static_cast<std::int64_t>(axis))},
                                           {{"axis", std::int64_t{0}}});
    row = e.value(e.node("Range", {e.scalar(0), count, e.scalar(1)}), {true, "i64", {n}});
    row = e.convert(row, type.element);
  }
  t.result(o, e.spread(row, {axis}, type, o.operands.empty() ? -1 : t.in(o, 0)));
}

constexpr Entry kShapeEntries[] = {
    {"stablehlo.reshape", reshape},
    {"stablehlo.dynamic_reshape", reshape},
    {"stablehlo.transpose", transpose},
    {"stablehlo.broadcast_in_dim", broadcast},
    {"stablehlo.dynamic_broadcast_in_dim", broadcast},
    {"stablehlo.slice", slice},
    {"stablehlo.real_dynamic_slice", dynamic_slice_of},
    {"stablehlo.pad", pad},
    {"stablehlo.dynamic_pad", dynamic_pad},
    {"stablehlo.reverse", reverse},
    {"stablehlo.concatenate", concatenate},
    {"stablehlo.get_dimension_size", extent},
    {"stablehlo.iota", iota},
    {"stablehlo.dynamic_iota", iota},
};

}  // namespace

std::span<const Entry> shape_entries() { return kShapeEntries; }

}  // namespace lc::onnx
