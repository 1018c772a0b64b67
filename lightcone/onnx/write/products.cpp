// Products: MatMul, Einsum and Conv. None of them makes the products of all pairs.
#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/onnx/write/translate.h"

namespace lc::onnx {
namespace {

using stablehlo::kDynamic;

struct Dot {
  Extents batch[2], summed[2], free[2];  // axes of each operand
};

Dot dot_of(const Translator& t, const Operation& o) {
  const stablehlo::Attribute& a = attribute(o, "dot_dimension_numbers");
  Dot d;
  d.batch[0] = field_of(a, "lhs_batching_dimensions"), d.batch[1] = field_of(a, "rhs_batching_dimensions");
  d.summed[0] = field_of(a, "lhs_contracting_dimensions"), d.summed[1] = field_of(a, "rhs_contracting_dimensions");
  for (const int side : {0, 1})
    for (std::int64_t i = 0; i < std::ssize(t.type(o.operands[static_cast<std::size_t>(side)]).shape); ++i)
      if (std::ranges::find(d.batch[side], i) == d.batch[side].end() &&
          std::ranges::find(d.summed[side], i) == d.summed[side].end())
        d.free[side].push_back(i);
  return d;
}

std::vector<std::size_t> order(std::initializer_list<const Extents*> parts) {
  std::vector<std::size_t> all;
  for (const Extents* p : parts) all.insert(all.end(), p->begin(), p->end());
  return all;
}

// A matrix times a vector, which takes the matrix as it is: v A is A^T v.
std::optional<std::string> matrix_times_vector(Translator& t, const Operation& o, const Dot& d, std::string_view as) {
  Emitter& e = t.emitter();
  for (const std::size_t side : {0, 1}) {
    if (d.summed[side].size() != 1 || d.free[side].size() != 1 || !d.batch[side].empty()) continue;
    if (!d.free[1 - side].empty()) continue;
    const auto name = [&](std::size_t k) { return e.cast(e.name(t.in(o, k)), e.element(t.in(o, k)), as); };
    const std::string a = name(side), v = name(1 - side);
    return e.node("MatMul", d.summed[side][0] == 1 ? std::vector{a, v} : std::vector{v, a});
  }
  return std::nullopt;
}

// Images times a matrix of channels: a convolution of one tap, which needs no transposed image. A batch of one may be
// missing from the image.
bool convolution_of_one(Translator& t, const Operation& o, const Dot& d) {
  Emitter& e = t.emitter();
  for (const std::size_t side : {0, 1}) {
    const std::size_t filter = 1 - side;
    if (t.type(o.operands[filter]).shape.size() != 2 || !d.batch[0].empty()) continue;
    if (d.summed[side].size() != 1 || d.summed[filter].size() != 1 || d.free[filter].size() != 1) continue;
    Type image = t.type(o.operands[side]), type = t.result_type(o);
    const bool alone = d.summed[side][0] == 0;
    if (alone) image.shape.insert(image.shape.begin(), 1);
    const std::size_t rank = image.shape.size();
    if (d.summed[side][0] > 1 || rank < (alone ? 4 : 3) || rank > 5 || image.element != "f32") continue;
    if (alone && is_dynamic(image.shape)) continue;
    Extents taps;
    for (std::size_t i = 2; i < rank; ++i) taps.push_back(static_cast<std::int64_t>(i));
    const bool is_first = d.free[filter][0] == 0;
    const std::string matrix = e.transpose(e.name(t.in(o, filter)),
                                           is_first ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1, 0});
    const Ref x = alone ? t.reshape(t.in(o, side), image) : t.in(o, side);
    const std::string y = e.node("Conv", {e.name(x), e.unsqueeze(matrix, taps)});
    std::vector<std::size_t> permutation;  // from [batch, out, places...]
    if (!alone) permutation.push_back(0);
    for (std::size_t i = 2; i < rank; ++i) permutation.push_back(i);
    permutation.insert(side == 0 ? permutation.end() : permutation.begin(), 1);
    Type made = type;
    made.shape.assign(rank, 1);
    for (std::size_t i = 0; i < permutation.size(); ++i) made.shape[permutation[i]] = type.shape[i];
    Ref r = e.value(y, made);
    if (alone) {
      made.shape.erase(made.shape.begin());
      for (std::size_t& p : permutation) --p;
      r = t.reshape(r, made);
    }
    t.result(o, t.transpose(r, permutation, type));
    return true;
  }
  return false;
}

// [batch..., m..., k] times [batch..., k, n...], or nullopt if there are too many axes for it.
std::optional<std::string> matmul(Translator& t, const Operation& o, const Dot& d, std::string_view as) {
  Emitter& e = t.emitter();
  if (d.summed[0].size() != 1 || d.free[1].size() != 1 || d.free[0].empty()) return std::nullopt;
  if (!d.batch[0].empty() && d.free[0].size() != 1) return std::nullopt;
  const auto operand = [&](int side) {
    const Ref x = t.in(o, static_cast<std::size_t>(side));
    const auto p =
        side == 0 ? order({&d.batch[0], &d.free[0], &d.summed[0]}) : order({&d.batch[1], &d.summed[1], &d.free[1]});
    return e.transpose(e.cast(e.name(x), e.element(x), as), p);
  };
  const std::string a = operand(0), b = operand(1);
  return e.node("MatMul", {a, b});
}

std::string einsum(Translator& t, const Operation& o, const Dot& d, std::string_view as) {
  Emitter& e = t.emitter();
  std::string axes[2], result;
  char next = 'a';
  for (const int side : {0, 1}) axes[side].resize(t.type(o.operands[static_cast<std::size_t>(side)]).shape.size());
  const auto at = [&](int side, std::int64_t axis) -> char& { return axes[side][static_cast<std::size_t>(axis)]; };
  for (std::size_t k = 0; k < d.batch[0].size(); ++k)
    at(0, d.batch[0][k]) = at(1, d.batch[1][k]) = next, result += next++;
  for (const int side : {0, 1})
    for (const std::int64_t i : d.free[side]) at(side, i) = next, result += next++;
  for (std::size_t k = 0; k < d.summed[0].size(); ++k) at(0, d.summed[0][k]) = at(1, d.summed[1][k]) = next++;
  if (next > 'z' + 1) throw Error("export_onnx", "a product of more than 26 axes");
  std::vector<std::string> in;
  for (const std::size_t k : {0, 1}) in.push_back(e.cast(e.name(t.in(o, k)), e.element(t.in(o, k)), as));
  return e.node("Einsum", std::move(in), {{"equation", str_cat(axes[0], ",", axes[1], "->", result)}});
}

// The type in which a product is computed: that of its sums.
std::string_view sums_as(std::string_view op, std::string_view in, std::string_view out) {
  return computed_as(op, is_narrow(dtype_of_element(in)) ? out : in);
}

void dot(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Dot d = dot_of(t, o);
  if (convolution_of_one(t, o, d)) return;
  const Type& type = t.result_type(o);
  const std::string& in = e.element(t.in(o, 0));
  std::string_view as = sums_as("MatMul", in, type.element);
  auto y = matrix_times_vector(t, o, d, as);
  if (!y) y = matmul(t, o, d, as);
  if (!y) {
    as = sums_as("Einsum", in, type.element);
    y = einsum(t, o, d, as);
  }
  t.result(o, e.value(e.cast(*y, as, type.element), type));
}

// ---- convolutions ------------------------------------------------------------------------------------------------

struct Convolution {
  Extents stride, dilation, low, high;
  std::int64_t groups;
};

Convolution convolution_of(const Operation& o) {
  Convolution c{integers_of(o, "window_strides"),
                integers_of(o, "rhs_dilation"),
                {},
                {},
                attribute(o, "feature_group_count").integer};
  const Extents padding = integers_of(o, "padding");
  for (std::size_t k = 0; k < c.stride.size(); ++k)
    c.low.push_back(padding[2 * k]), c.high.push_back(padding[2 * k + 1]);
  return c;
}

// A sum of products of slices, for element types of which Conv has no kernel.
std::string by_taps(Translator& t, const Operation& o, const Convolution& c, std::string_view as) {
  constexpr std::int64_t kMost = 512;
  Emitter& e = t.emitter();
  const Ref image = t.in(o, 0), filter = t.in(o, 1);
  const Type& type = t.result_type(o);
  const std::size_t n = c.stride.size();
  const Extents &taps = e.shape(filter), &out = type.shape;
  std::int64_t count = 1;
  for (std::size_t k = 0; k < n; ++k) count *= taps[2 + k];
  if (is_dynamic({out.begin() + 2, out.end()}))
    throw Error("export_onnx", str_cat("a convolution of type ", type.element, " over an open axis has no kernel"));
  if (count > kMost || is_dynamic(taps))
    throw Error("export_onnx", str_cat("a convolution of ", count, " taps of type ", type.element,
                                       ", of which ONNX runtimes have no kernel, is too large"));
  Extents pads(2 * (n + 2), 0), axes;
  for (std::size_t k = 0; k < n; ++k)
    pads[2 + k] = c.low[k], pads[n + 4 + k] = c.high[k], axes.push_back(static_cast<std::int64_t>(k) + 3);
  const std::int64_t out_channels = taps[0] / c.groups, in_channels = taps[1];
  std::string x = e.node("Pad", {e.cast(e.name(image), e.element(image), as), e.list(pads)});
  // [batch, groups, channels, places...], and the filters as [groups, out, in, taps...]
  const std::string extents = e.node("Shape", {x}, {{"start", std::int64_t{2}}});
  const std::string batch = e.extent(image, 0);
  x = e.node("Reshape",
             {x, e.node("Concat", {batch, e.list({c.groups, in_channels}), extents}, {{"axis", std::int64_t{0}}})});
  Extents split{c.groups, out_channels, in_channels};
  split.insert(split.end(), taps.begin() + 2, taps.end());
  const std::string w = e.reshape(e.cast(e.name(filter), e.element(filter), as), split);
  std::string sum;
  for (std::int64_t tap = 0; tap < count; ++tap) {
    Extents begin, end, step, first, last;
    std::int64_t rest = tap;
    for (std::size_t k = n; k-- > 0;) {
      const std::int64_t at = rest % taps[2 + k];
      rest /= taps[2 + k];
      first.insert(first.begin(), at), last.insert(last.begin(), at + 1);
      begin.insert(begin.begin(), at * c.dilation[k]);
      end.insert(end.begin(), at * c.dilation[k] + (out[2 + k] - 1) * c.stride[k] + 1);
    }
    const std::string part = e.slice(x, begin, end, axes, c.stride);
    const std::string row = e.squeeze(e.slice(w, first, last, axes, Extents(n, 1)), axes);  // [groups, out, in]
    const std::string places(n, ' ');
    std::string letters;
    for (std::size_t k = 0; k < n; ++k) letters += static_cast<char>('p' + k);
    const std::string y = e.node("Einsum", {part, row}, {{"equation", str_cat("bgi", letters, ",goi->bgo", letters)}});
    sum = sum.empty() ? y : e.node("Add", {sum, y});
  }
  return e.reshape(sum, out);
}

void convolution(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  const std::string& in = e.element(t.in(o, 0));
  const Convolution c = convolution_of(o);
  std::string_view as = sums_as("Conv", in, type.element);
  std::string y;
  if (as != "f32") {
    as = sums_as("Einsum", in, type.element);
    y = by_taps(t, o, c, as);
  } else {
    Extents pads = c.low;
    pads.insert(pads.end(), c.high.begin(), c.high.end());
    const Extents& filter = e.shape(t.in(o, 1));
    OutAttributes attributes{{"strides", c.stride}, {"dilations", c.dilation}, {"pads", pads}, {"group", c.groups}};
    if (!is_dynamic(filter)) attributes.push_back({"kernel_shape", Extents(filter.begin() + 2, filter.end())});
    std::vector<std::string> operands;
    for (const std::size_t k : {0, 1}) operands.push_back(e.cast(e.name(t.in(o, k)), e.element(t.in(o, k)), as));
    y = e.node("Conv", std::move(operands), std::move(attributes));
  }
  t.result(o, e.value(e.cast(y, as, type.element), type));
}

constexpr Entry kProductEntries[] = {
    {"stablehlo.dot_general", dot},
    {"stablehlo.convolution", convolution},
};

}  // namespace

std::span<const Entry> product_entries() { return kProductEntries; }

}  // namespace lc::onnx
