// Reductions, and those over windows: pools.
#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/onnx/write/translate.h"

namespace lc::onnx {
namespace {

using stablehlo::kDynamic;

void reduce(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Extents axes = integers_of(o, "dimensions");
  const std::string_view combine = combiner(o);
  const bool sums = combine == "stablehlo.add", either = combine == "stablehlo.or";
  const std::string_view op = sums ? "ReduceSum" : "ReduceMax";
  const Ref x = either ? e.convert(t.in(o, 0), "ui8") : t.in(o, 0);
  if (e.element(x) == "ui64" && !sums)
    throw Error("export_onnx", "a maximum of unsigned numbers of 64 bits has no counterpart in ONNX");
  OutAttributes attributes{{"keepdims", std::int64_t{0}}};
  std::vector<std::string> more;
  if (sums || e.opset() >= 18) more.push_back(e.list(axes));
  else attributes.push_back({"axes", axes});
  Type type = t.result_type(o);
  type.element = e.element(x);
  const Ref y = e.whole(op, x, type, std::move(more), std::move(attributes));
  if (axes.size() == 1) (sums ? t.sum_of : t.max_of)[y] = {x, static_cast<std::size_t>(axes[0])};
  t.result(o, either ? e.convert(y, "i1") : y);
}

// ---- windows -----------------------------------------------------------------------------------------------------

struct Windows {
  Extents size, stride, dilation, low, high;
  bool moves(std::size_t i) const { return size[i] != 1 || stride[i] != 1 || low[i] != 0 || high[i] != 0; }
};

Windows windows_of(const Operation& o) {
  Windows w{integers_of(o, "window_dimensions"),
            integers_of(o, "window_strides"),
            integers_of(o, "window_dilations"),
            {},
            {}};
  const Extents padding = integers_of(o, "padding");
  for (std::size_t i = 0; i < w.size.size(); ++i) w.low.push_back(padding[2 * i]), w.high.push_back(padding[2 * i + 1]);
  return w;
}

// Combines slices that begin at each place inside a window.
Ref by_slices(Translator& t, const Operation& o, const Windows& w) {
  constexpr std::int64_t kMost = 512;
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  Extents pads = w.low, axes;
  pads.insert(pads.end(), w.high.begin(), w.high.end());
  std::int64_t places = 1;
  for (std::size_t i = 0; i < w.size.size(); ++i)
    if (w.moves(i)) axes.push_back(static_cast<std::int64_t>(i)), places *= w.size[i];
  if (is_dynamic(type.shape))
    throw Error("export_onnx", str_cat("windows of type ", type.element, " over an open axis have no pool in ONNX"));
  if (places > kMost)
    throw Error("export_onnx", str_cat("a window of ", places, " elements of type ", type.element,
                                       ", of which ONNX has no pools, is too large"));
  const std::string_view as = computed_as("Pad", type.element);
  const std::string initial = e.cast(e.name(t.in(o, 1)), type.element, as);
  std::string x = e.cast(e.name(t.in(o, 0)), type.element, as);
  if (std::ranges::any_of(pads, [](std::int64_t n) { return n != 0; })) x = e.node("Pad", {x, e.list(pads), initial});
  x = e.cast(x, as, type.element);
  const bool sums = combiner(o) == "stablehlo.add";
  Ref all = -1;
  for (std::int64_t place = 0; place < places; ++place) {
    Extents begin, end, step;
    std::int64_t rest = place;
    for (const std::int64_t axis : axes) {
      const auto i = static_cast<std::size_t>(axis);
      const std::int64_t at = rest % w.size[i] * w.dilation[i];
      rest /= w.size[i];
      begin.push_back(at), step.push_back(w.stride[i]);
      end.push_back(at + (type.shape[i] - 1) * w.stride[i] + 1);
    }
    const Ref part = e.value(e.slice(x, begin, end, axes, step), type);
    all = all < 0 ? part : e.elementwise(sums ? "Add" : "Max", {all, part}, type);
  }
  return all;
}

// Calls `pool` on x with the moving axes last, after exactly two others.
std::string with_moving_last(Emitter& e, Ref x, const Windows& w,
                             const std::function<std::string(const std::string&)>& pool) {
  std::vector<std::size_t> order, moving;
  for (std::size_t i = 0; i < w.size.size(); ++i) (w.moves(i) ? moving : order).push_back(i);
  const std::size_t others = order.size();
  order.insert(order.end(), moving.begin(), moving.end());
  std::string y = e.transpose(e.name(x), order);
  if (others < 2) {
    Extents added;
    for (std::size_t k = others; k < 2; ++k) added.push_back(static_cast<std::int64_t>(k));
    y = e.squeeze(pool(e.unsqueeze(y, added)), added);
  } else if (others == 2) {
    y = pool(y);
  } else {
    const OutAttributes joined{{"axis", std::int64_t{0}}};
    std::vector<std::string> flat{e.list({1, kDynamic})}, extents;
    for (std::size_t k = others; k < order.size(); ++k) flat.push_back(e.extent(x, order[k]));
    y = pool(e.node("Reshape", {y, e.node("Concat", flat, joined)}));
    for (std::size_t k = 0; k < others; ++k) extents.push_back(e.extent(x, order[k]));
    extents.push_back(e.node("Shape", {y}, {{"start", std::int64_t{2}}}));
    y = e.node("Reshape", {y, e.node("Concat", extents, joined)}, {{"allowzero", std::int64_t{1}}});
  }
  std::vector<std::size_t> back(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) back[order[k]] = k;
  return e.transpose(y, back);
}

void reduce_window(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  const Windows w = windows_of(o);
  const bool sums = combiner(o) == "stablehlo.add";
  Extents size, stride, dilation, pads, after;
  std::int64_t count = 1;
  bool fits = true;
  for (std::size_t i = 0; i < w.size.size(); ++i) {
    if (!w.moves(i)) continue;
    size.push_back(w.size[i]), stride.push_back(w.stride[i]), dilation.push_back(w.dilation[i]);
    pads.push_back(w.low[i]), after.push_back(w.high[i]);
    count *= w.size[i];
    fits = fits && w.low[i] < w.size[i] && w.high[i] < w.size[i];
  }
  pads.insert(pads.end(), after.begin(), after.end());
  const bool dilated = std::ranges::any_of(dilation, [](std::int64_t d) { return d != 1; });
  const bool has_kernel = type.element == "f32" || (!sums && type.element == "f64");
  if (combiner(o) == "stablehlo.or") throw Error("export_onnx", "windows of bools have no counterpart in ONNX");
  if (!has_kernel || !fits || size.size() > 3 || size.empty() || (sums && dilated && e.opset() < 19))
    return t.result(o, by_slices(t, o, w));
  OutAttributes attributes{{"kernel_shape", size}, {"strides", stride}, {"pads", pads}};
  if (dilated) attributes.push_back({"dilations", dilation});
  if (sums) attributes.push_back({"count_include_pad", std::int64_t{1}});
  const std::string y = with_moving_last(e, t.in(o, 0), w, [&](const std::string& x) {
    return e.node(sums ? "AveragePool" : "MaxPool", {x}, attributes);
  });
  const Ref pooled = e.value(y, type);
  if (!sums) return t.result(o, pooled);
  std::vector<std::byte> by(sizeof(float));
  store_f64(by.data(), DType::F32, 0, static_cast<double>(count));
  const Ref sum = e.elementwise("Mul", {pooled, e.splat({true, "f32", {}}, by)}, type);
  t.averages[sum] = {pooled, static_cast<double>(count)};
  t.result(o, sum);
}

constexpr Entry kReductionEntries[] = {
    {"stablehlo.reduce", reduce},
    {"stablehlo.reduce_window", reduce_window},
};

}  // namespace

std::span<const Entry> reduction_entries() { return kReductionEntries; }

}  // namespace lc::onnx
