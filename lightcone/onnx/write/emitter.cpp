#include "lightcone/onnx/write/emitter.h"

#include <algorithm>
#include <cstring>

#include "lightcone/base/error.h"

namespace lc::onnx {
namespace {

// The element types for which onnxruntime has kernels on a CPU. Halves are not listed: it converts them itself.
struct Kernels {
  std::string_view ops, elements;
};
constexpr Kernels kKernels[] = {
    {" Add Sub Mul Div Mod Less Equal GreaterOrEqual Greater ", " f16 f32 f64 i8 i16 i32 i64 ui8 ui16 ui32 ui64 "},
    {" And Or Xor Not ", " i1 "},
    {" BitwiseAnd BitwiseOr BitwiseXor BitShift ", " i8 i16 i32 i64 ui8 ui16 ui32 ui64 "},
    {" Max Min Clip ", " f16 f32 f64 i8 i32 i64 ui8 ui32 ui64 "},
    {" Pow ", " f16 f32 f64 i32 i64 "},
    {" Where ", " f16 f32 f64 i8 i32 i64 ui8 ui32 "},
    {" ReduceSum Einsum CumSum ", " f16 f32 f64 i32 i64 "},
    {" ReduceMax ", " f16 f32 f64 i8 i32 i64 ui8 "},
    {" MatMul ", " f16 f32 f64 i32 i64 ui32 ui64 "},
    {" TopK ", " f16 f32 f64 i8 i16 i32 i64 ui8 "},
    {" Pad ", " f16 f32 f64 i8 i32 i64 ui8 ui32 ui64 i1 "},
    {" Sin Cos Sqrt Exp Log Reciprocal Round Relu Softmax ", " f16 f32 f64 "},
    {" Conv AveragePool ", " f16 f32 "},
    {" MaxPool ", " f16 f32 f64 i8 ui8 "},
    {" Range ", " i16 i32 i64 f32 f64 "},
};
// What the other operations move.
constexpr std::string_view kMoved = " f16 f32 f64 i8 i16 i32 i64 ui8 ui16 ui32 ui64 i1 ";

bool lists(std::string_view list, std::string_view word) {
  return list.find(" " + std::string(word) + " ") != std::string_view::npos;
}

std::string_view wider(std::string_view e) {
  if (e == "i1") return "ui8";
  if (e == "ui8" || e == "i8" || e == "ui16" || e == "i16") return "i32";
  if (e == "ui32" || e == "ui64") return "i64";
  return "f32";
}

std::string text_of(const Extents& s) {
  std::string t;
  for (const std::int64_t n : s) t += str_cat(n, ",");
  return t;
}

}  // namespace

std::string_view computed_as(std::string_view op, std::string_view element) {
  std::string_view elements = kMoved;
  for (const Kernels& k : kKernels)
    if (lists(k.ops, op)) elements = k.elements;
  std::string_view e = element;
  for (int k = 0; k < 3 && !lists(elements, e); ++k) e = wider(e);
  return lists(elements, e) ? e : element;
}

bool is_dynamic(const Extents& s) { return std::ranges::find(s, stablehlo::kDynamic) != s.end(); }

DType dtype_of_element(std::string_view element) {
  if (const auto t = stablehlo::dtype_of(element)) return *t;
  throw Error("export_onnx", str_cat("elements of type ", element, " have no counterpart in ONNX"));
}

Emitter::Emitter(OutGraph& g, int opset) : opset_(opset) { scopes_.push_back({&g, {}}); }

// ---- values ------------------------------------------------------------------------------------------------------

Ref Emitter::value(std::string name, Type type) {
  held_.push_back({std::move(type), std::move(name)});
  return static_cast<Ref>(held_.size()) - 1;
}

Ref Emitter::splat(Type type, std::vector<std::byte> element) {
  held_.push_back({std::move(type), {}, std::move(element)});
  return static_cast<Ref>(held_.size()) - 1;
}

Ref Emitter::spread(Ref small, std::vector<std::size_t> axes, Type type, Ref list) {
  if (at(small).constant) {
    held_.push_back({std::move(type), {}, at(small).constant, -1, {}, list});
  } else if (at(small).small >= 0) {  // what a spread repeats is one
    const Held inner = at(small);
    std::vector<std::size_t> through;
    for (const std::size_t a : inner.axes) through.push_back(axes[a]);
    return spread(inner.small, std::move(through), std::move(type), list);
  } else {
    held_.push_back({std::move(type), {}, {}, small, std::move(axes), list});
  }
  return static_cast<Ref>(held_.size()) - 1;
}

std::vector<std::size_t> Emitter::repeated_axes(Ref r) const {
  const Held& h = at(r);
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < h.type.shape.size(); ++i) {
    const auto k = std::ranges::find(h.axes, i);
    const bool has = k != h.axes.end() && shape(h.small)[static_cast<std::size_t>(k - h.axes.begin())] != 1;
    if (!has && h.type.shape[i] != 1) all.push_back(i);
  }
  return all;
}

Ref Emitter::respread(Ref r, const Type& to, Ref list) {
  const Held h = at(r);
  if (h.small < 0) return -1;
  std::vector<std::size_t> place(h.type.shape.size(), to.shape.size());
  std::size_t j = 0;
  for (std::size_t i = 0; i < h.type.shape.size(); ++i) {
    if (h.type.shape[i] == 1) continue;
    while (j < to.shape.size() && to.shape[j] == 1) ++j;
    if (j == to.shape.size() || to.shape[j] != h.type.shape[i]) return -1;
    place[i] = j++;
  }
  for (; j < to.shape.size(); ++j)
    if (to.shape[j] != 1) return -1;
  std::vector<std::size_t> axes;
  for (const std::size_t a : h.axes) {
    if (place[a] == to.shape.size()) return -1;  // an axis of extent 1, which has no place
    axes.push_back(place[a]);
  }
  return spread(h.small, std::move(axes), to, list);
}

std::optional<double> Emitter::number(Ref r) const {
  if (!at(r).constant || at(r).constant->empty()) return std::nullopt;
  return load_f64(at(r).constant->data(), dtype_of_element(element(r)), 0);
}

const std::string* Emitter::known(const std::string& what) const {
  for (const Scope& s : scopes_)
    if (const auto i = s.known.find(what); i != s.known.end()) return &i->second;
  return nullptr;
}
std::string Emitter::once(const std::string& what, const std::function<std::string()>& write) {
  if (const std::string* n = known(what)) return *n;
  const std::string n = write();
  return scopes_.back().known[what] = n;
}

std::string Emitter::name(Ref r) {
  if (!at(r).name.empty()) return at(r).name;
  return once(str_cat("value ", r), [&] { return written(r); });
}

std::string Emitter::written(Ref r) {
  const Held h = at(r);
  const auto sizes = [&] { return is_dynamic(h.type.shape) ? name(h.list) : list(h.type.shape); };
  std::string x;
  Extents have;
  if (h.constant && h.constant->empty()) return constant(h.type.element, h.type.shape, {});
  if (h.constant) {
    x = constant(h.type.element, {}, *h.constant);
  } else {
    const Loose l = loose(r, h.type.element);
    x = l.name, have = l.shape;
  }
  if (have == h.type.shape) return x;
  const std::string_view e = computed_as("Expand", h.type.element);
  return cast(node("Expand", {cast(x, h.type.element, e), sizes()}), e, h.type.element);
}

Emitter::Loose Emitter::loose(Ref r, std::string_view as) {
  const Held h = at(r);
  if (h.constant) {
    if (h.constant->empty()) return {cast(name(r), h.type.element, as), h.type.shape};
    if (h.type.element == as) return {constant(as, {}, *h.constant), {}};
    const DType from = dtype_of_element(h.type.element), to = dtype_of_element(as);
    std::vector<std::byte> one(size_of(to));
    if (is_float(from) || is_float(to)) store_f64(one.data(), to, 0, load_f64(h.constant->data(), from, 0));
    else store_i64(one.data(), to, 0, load_i64(h.constant->data(), from, 0));
    return {constant(as, {}, one), {}};
  }
  if (h.small < 0) return {cast(name(r), h.type.element, as), h.type.shape};
  std::vector<std::size_t> order(h.axes.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::sort(order, {}, [&](std::size_t k) { return h.axes[k]; });
  Loose l{cast(transpose(name(h.small), order), h.type.element, as), {}};
  const std::size_t rank = h.type.shape.size();
  Extents missing;  // axes after the first one of `small`
  const std::size_t first = order.empty() ? rank : h.axes[order[0]];
  for (std::size_t i = first, k = 0; i < rank; ++i) {
    if (k < order.size() && h.axes[order[k]] == i) {
      l.shape.push_back(shape(h.small)[order[k++]]);
    } else {
      missing.push_back(static_cast<std::int64_t>(i - first));
      l.shape.push_back(1);
    }
  }
  l.name = unsqueeze(l.name, missing);
  return l;
}

std::string Emitter::cast(const std::string& name, std::string_view from, std::string_view to) {
  if (from == to) return name;
  OutAttributes attributes{{"to", element_number(dtype_of_element(to))}};
  // prim::cast() turns too large numbers into infinities of E5M2; E4M3FN has none, and saturates.
  if (dtype_of_element(to) == DType::F8E5M2) attributes.push_back({"saturate", std::int64_t{0}});
  return once(str_cat("cast ", to, " ", name), [&] { return node("Cast", {name}, attributes); });
}

// ---- nodes -------------------------------------------------------------------------------------------------------

std::string Emitter::fresh() {
  for (;;)
    if (std::string n = str_cat("lc_", next_++); taken_.insert(n).second) return n;
}

std::vector<std::string> Emitter::nodes(std::string_view op, std::vector<std::string> inputs, std::size_t outputs,
                                        OutAttributes attributes) {
  OutNode n{std::string(op),      str_cat(op, "_", numbers_[std::string(op)]++), {}, std::move(inputs), {},
            std::move(attributes)};
  if (const Location where = OpScope::current(); where.known())
    n.comment = str_cat(where.op, *where.op ? " at " : "", where.str());
  for (std::size_t k = 0; k < outputs; ++k) n.outputs.push_back(fresh());
  std::vector<std::string> made = n.outputs;
  scopes_.back().graph->nodes.push_back(std::move(n));
  return made;
}

std::string Emitter::node(std::string_view op, std::vector<std::string> inputs, OutAttributes attributes) {
  return nodes(op, std::move(inputs), 1, std::move(attributes))[0];
}

Ref Emitter::elementwise(std::string_view op, std::vector<Ref> in, const Type& result, OutAttributes attributes,
                         std::size_t first) {
  const std::string before = element(in[first]);
  const std::string_view as = computed_as(op, before);
  const std::size_t rank = result.shape.size();
  std::vector<std::string> names;
  Extents shape(rank, 1);
  std::size_t most = 0;
  Ref list = -1;
  for (std::size_t k = 0; k < in.size(); ++k) {
    const Loose l = loose(in[k], k < first ? std::string_view(element(in[k])) : as);
    names.push_back(l.name);
    most = std::max(most, l.shape.size());
    for (std::size_t i = 0; i < l.shape.size(); ++i)
      if (std::int64_t& n = shape[rank - l.shape.size() + i]; n == 1) n = l.shape[i];
    if (list_of(in[k]) >= 0) list = list_of(in[k]);
  }
  shape.erase(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(most));
  const bool compares = result.element == "i1" && before != "i1";
  std::string y = node(op, std::move(names), std::move(attributes));
  if (!compares) y = cast(y, as, result.element);
  return broadcast(y, std::move(shape), result, list);
}

Ref Emitter::broadcast(const std::string& name, Extents shape, const Type& result, Ref list) {
  if (shape == result.shape) return value(name, result);
  const std::size_t rank = result.shape.size(), most = shape.size();
  std::vector<std::size_t> axes;
  for (std::size_t i = rank - most; i < rank; ++i) axes.push_back(i);
  return spread(value(name, {true, result.element, std::move(shape)}), std::move(axes), result, list);
}

Ref Emitter::convert(Ref x, std::string_view to) {
  if (element(x) == to) return x;
  Type result = type(x);
  result.element = to;
  const bool to_narrow = is_f8(dtype_of_element(to)) && element(x) != "f32";
  if (to_narrow) x = convert(x, "f32");
  const Loose l = loose(x, element(x));
  return broadcast(cast(l.name, element(x), to), l.shape, result, list_of(x));
}

Ref Emitter::bitcast(Ref x, std::string_view to) {
  if (element(x) == to) return x;
  Type result = type(x);
  result.element = to;
  const Loose l = loose(x, element(x));  // as it is: a wider type has other bits
  return broadcast(node("BitCast", {l.name}, {{"to", element_number(dtype_of_element(to))}}), l.shape, result,
                   list_of(x));
}

Ref Emitter::whole(std::string_view op, Ref x, const Type& result, std::vector<std::string> more,
                   OutAttributes attributes) {
  const std::string before = element(x);
  const std::string_view as = computed_as(op, before);
  more.insert(more.begin(), cast(name(x), before, as));
  return value(cast(node(op, std::move(more), std::move(attributes)), as, result.element), result);
}

std::string Emitter::constant(std::string_view element, const Extents& shape, std::vector<std::byte> bytes) {
  std::string key = str_cat(element, "[", text_of(shape), "]");
  key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto [it, is_new] = constants_.try_emplace(std::move(key));
  if (!is_new) return it->second;
  it->second = fresh();
  outermost().initializers.push_back({it->second, dtype_of_element(element), shape, std::move(bytes)});
  return it->second;
}

std::string Emitter::list(const Extents& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(std::int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return constant("i64", {static_cast<std::int64_t>(values.size())}, std::move(bytes));
}

std::string Emitter::scalar(std::int64_t v) {
  std::vector<std::byte> bytes(sizeof v);
  std::memcpy(bytes.data(), &v, sizeof v);
  return constant("i64", {}, std::move(bytes));
}

std::string Emitter::number(std::string_view element, double v) {
  const DType t = dtype_of_element(element);
  std::vector<std::byte> bytes(size_of(t));
  store_f64(bytes.data(), t, 0, v);
  return constant(element, {}, std::move(bytes));
}

std::string Emitter::extents(Ref r) {
  if (!is_dynamic(shape(r))) return list(shape(r));
  if (at(r).list >= 0) return name(at(r).list);
  const std::string x = name(r);
  return once("shape of " + x, [&] { return node("Shape", {x}); });
}

std::string Emitter::extent(Ref r, std::size_t axis) {
  if (const std::int64_t n = shape(r)[axis]; n != stablehlo::kDynamic) return list({n});
  const std::string x = name(r);
  const auto a = static_cast<std::int64_t>(axis);
  return once(str_cat("extent ", axis, " of ", x), [&] { return node("Shape", {x}, {{"start", a}, {"end", a + 1}}); });
}

// ---- shapes ------------------------------------------------------------------------------------------------------

std::string Emitter::reshape(const std::string& x, const Extents& to, const std::string& list_of_extents) {
  const auto open = std::ranges::count(to, stablehlo::kDynamic);
  const bool empty = std::ranges::find(to, 0) != to.end();
  if (open > 1 || (open == 1 && empty)) {
    check(!list_of_extents.empty(), "a shape of several unknown extents has no list");
    return node("Reshape", {x, list_of_extents}, {{"allowzero", std::int64_t{1}}});
  }
  OutAttributes attributes;
  if (empty) attributes.push_back({"allowzero", std::int64_t{1}});
  return node("Reshape", {x, list(to)}, std::move(attributes));  // kDynamic is -1: the extent that fits
}

std::string Emitter::unsqueeze(const std::string& x, const Extents& axes) {
  return axes.empty() ? x : node("Unsqueeze", {x, list(axes)});
}
std::string Emitter::squeeze(const std::string& x, const Extents& axes) {
  return axes.empty() ? x : node("Squeeze", {x, list(axes)});
}

std::string Emitter::transpose(const std::string& x, const std::vector<std::size_t>& permutation) {
  if (std::ranges::is_sorted(permutation)) return x;
  return node("Transpose", {x}, {{"perm", std::vector<std::int64_t>(permutation.begin(), permutation.end())}});
}

std::string Emitter::slice(const std::string& x, const Extents& begin, const Extents& end, const Extents& axes,
                           const Extents& steps) {
  return node("Slice", {x, list(begin), list(end), list(axes), list(steps)});
}

// ---- subgraphs ---------------------------------------------------------------------------------------------------

void Emitter::inside(OutGraph& g, const std::function<void()>& write) {
  scopes_.push_back({&g, {}});
  struct Leave {
    std::vector<Scope>& scopes;
    ~Leave() { scopes.pop_back(); }
  } leave{scopes_};
  write();
}

}  // namespace lc::onnx
