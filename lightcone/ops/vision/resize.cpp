#include "lightcone/ops/vision/resize.h"

#include <cmath>
#include <span>

#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace {

// One axis of n elements that becomes one of m. Element j of the result lies at (j times + plus) / over + last: with
// whole numbers, which sizes give, the quotient is rounded once, and positions on elements or between two are exact.
struct ResizedAxis {
  int axis;
  std::int64_t n, m;
  double scale, times, plus, over, last;
  bool cropped;  // what lies outside is ResizeOptions::extrapolation_value
};

struct Target {
  std::int64_t m;
  double scale;
  bool whole;  // the scale is m / n
};

// The positions under a coordinate_transformation_mode.
ResizedAxis transformed(int axis, std::int64_t n, const Target& to, std::string_view by, double start, double end) {
  const auto in = static_cast<double>(n), out = static_cast<double>(to.m), width = to.whole ? out : in * to.scale;
  ResizedAxis a{axis, n, to.m, to.scale, 1, 0, to.scale, 0, false};
  const auto centred = [&] {
    if (to.whole) a.times = 2 * in, a.plus = in - out, a.over = 2 * out;
    else a.times = 2, a.plus = 1 - to.scale, a.over = 2 * to.scale;
  };
  if (by == "half_pixel") {
    centred();
  } else if (by == "half_pixel_symmetric") {
    centred();
    if (!to.whole) a.plus += width - out;
  } else if (by == "pytorch_half_pixel") {
    if (to.m > 1) centred();
    else a.times = 0, a.over = 1;
  } else if (by == "asymmetric") {
    if (to.whole) a.times = in, a.over = out;
  } else if (by == "tf_half_pixel_for_nn") {
    if (to.whole) a.times = 2 * in, a.plus = in, a.over = 2 * out;
    else a.plus = 0.5;
  } else if (by == "align_corners") {
    a.times = width == 1 ? 0 : in - 1, a.over = width == 1 ? 1 : width - 1;
  } else {  // tf_crop_and_resize
    a.cropped = true, a.over = width == 1 ? 1 : width - 1;
    a.times = width == 1 ? 0 : (end - start) * (in - 1);
    a.last = width == 1 ? (start + end) * (in - 1) / 2 : start * (in - 1);
  }
  return a;
}

Tensor positions(const Graph& g, const ResizedAxis& a) {  // f64 [m]
  Tensor t = const_cast<Graph&>(g).index({a.m}, Dim::index(0, a.m), DType::F64);
  if (a.times != 1) t = mul(t, a.times);
  if (a.plus != 0) t = add(t, a.plus);
  if (a.over != 1) t = prim::div(t, full_like(t, a.over));
  return a.last != 0 ? add(t, a.last) : t;
}

// Elements `at` (whole f64 of any shape [m, ..]) of the axis, which becomes these axes; edges repeat.
Tensor taken(const Tensor& x, const ResizedAxis& a, const Tensor& at) {
  const Tensor index = prim::cast(clamp(at, 0, static_cast<double>(a.n - 1)), DType::I64);
  const Tensor rows = index_select(x, a.axis, index.reshape({product(index.shape())}));
  Shape s = x.shape();
  const Shape in_place = index.shape();
  s.erase(s.begin() + a.axis);
  s.insert(s.begin() + a.axis, in_place.begin(), in_place.end());
  return rows.reshape(s);
}
// Values [m, ..] along x's axes from `axis` on.
Tensor along(const Tensor& values, const Tensor& x, int axis) {
  const Shape own = values.shape();
  Shape s(u(x.rank()), 1);
  std::ranges::copy(own, s.begin() + axis);
  return values.reshape(s).expand(x.shape());
}
Tensor weighted(const Tensor& part, const Tensor& weight, int axis) {
  return prim::mul(part, along(prim::cast(weight, part.dtype()), part, axis));
}

Tensor nearest_along(const Tensor& x, const ResizedAxis& a, std::string_view mode) {
  const Tensor at = positions(x.graph(), a);
  if (mode == "floor") return taken(x, a, floor(at));
  if (mode == "ceil") return taken(x, a, ceil(at));
  return taken(x, a, mode == "round_prefer_ceil" ? floor(add(at, 0.5)) : ceil(add(at, -0.5)));
}

Tensor triangle(const Tensor& d) { return prim::maximum(add(neg(abs(d)), 1), full_like(d, 0)); }
// R. G. Keys, "Cubic convolution interpolation for digital image processing" (1981), with his coefficient a.
Tensor cubic(const Tensor& distance, double a) {
  const Tensor d = abs(distance);
  const Tensor near = add(prim::mul(prim::mul(add(mul(d, a + 2), -(a + 3)), d), d), 1);
  const Tensor far = add(prim::mul(add(prim::mul(add(mul(d, a), -5 * a), d), 8 * a), d), -4 * a);
  return prim::where(prim::less_than(full_like(d, 1), d),
                     prim::where(prim::less_than(d, full_like(d, 2)), far, full_like(d, 0)), near);
}

// The weighted sum of the elements around each position. A filter of support 1 (linear) or 2 (cubic) elements reaches
// 1 / scale times as far when it is widened.
Tensor filtered_along(const Tensor& x, const ResizedAxis& a, const ResizeOptions& o) {
  const bool linear = o.mode == "linear", widened = o.antialias && a.scale < 1;
  const double narrow = widened ? a.scale : 1;
  const auto reach = static_cast<std::int64_t>(std::ceil((linear ? 1 : 2) / narrow));
  const std::int64_t taps = 2 * reach;  // elements low + 1 - reach to low + reach
  const Tensor at = positions(x.graph(), a), low = floor(at);
  const Shape s{a.m, taps};
  Graph& g = x.graph();
  const auto column = [&](const Tensor& t) { return t.unsqueeze(1).expand(s); };
  const Tensor tap = g.index(s, Dim::index(1, taps) + Dim(1 - reach), DType::F64), place = prim::add(column(low), tap);
  const Tensor distance = mul(prim::add(tap, column(prim::add(low, neg(at)))), narrow);
  Tensor weight = linear ? triangle(distance) : cubic(distance, o.cubic_coeff_a);
  const auto share = [&] { weight = prim::div(weight, column(sum(weight, {1}))); };
  if (widened) share();
  if (o.exclude_outside) {
    const Tensor inside =
        logical_and(le(full_like(place, 0), place), le(place, full_like(place, static_cast<double>(a.n - 1))));
    weight = prim::where(inside, weight, full_like(weight, 0));
    share();
  }
  if (taps > 4) {
    const Tensor part = taken(x, a, place);
    return sum(weighted(part, weight, a.axis), {a.axis + 1});
  }
  Tensor total;
  for (int k = 0; k < taps; ++k) {
    const Tensor one = weighted(taken(x, a, place.select(1, k)), weight.select(1, k), a.axis);
    total = k ? prim::add(total, one) : one;
  }
  return total;
}

bool among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}
void check_word(std::string_view word, std::initializer_list<std::string_view> words, const char* what) {
  if (among(word, words)) return;
  std::string all;
  for (const std::string_view w : words) all += str_cat(all.empty() ? "\"" : ", \"", w, "\"");
  throw Error("resize", str_cat("there is no ", what, " \"", word, "\"; there are ", all));
}
void check_words(const ResizeOptions& o) {
  check_word(o.mode, {"nearest", "linear", "cubic"}, "mode");
  check_word(o.coordinate_transformation_mode,
             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
              "tf_half_pixel_for_nn", "tf_crop_and_resize"},
             "coordinate_transformation_mode");
  check_word(o.nearest_mode, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, "nearest_mode");
  check_word(o.keep_aspect_ratio_policy, {"stretch", "not_larger", "not_smaller"}, "keep_aspect_ratio_policy");
  if (o.antialias && o.mode == "nearest") throw Error("resize", "mode \"nearest\" has no filter to widen (antialias)");
  if (o.scales.empty() == o.sizes.empty()) throw Error("resize", "it needs scales or sizes, one of them");
}

// The axes that the options are for, counted from 0.
std::vector<int> axes_of(const Tensor& x, const ResizeOptions& o) {
  std::vector<int> axes;
  for (const int a : o.axes) {
    axes.push_back(wrap_axis(a, x.rank(), x.shape(), "resize"));
    if (std::ranges::count(axes, axes.back()) > 1) throw Error("resize", str_cat("axis ", a, " is named twice"));
  }
  if (o.axes.empty())
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  const auto fits = [&](std::size_t count, std::size_t want, const char* what) {
    if (count != want)
      throw Error("resize", str_cat(count, " ", what, " for ", axes.size(), " axes of ", str(x.shape())));
  };
  if (!o.scales.empty()) fits(o.scales.size(), axes.size(), "scales");
  if (!o.sizes.empty()) fits(o.sizes.size(), axes.size(), "sizes");
  if (o.coordinate_transformation_mode == "tf_crop_and_resize") fits(o.roi.size(), 2 * axes.size(), "ends in roi");
  return axes;
}

// The common scale of a keep_aspect_ratio_policy; 0 for "stretch".
double common_scale(const Tensor& x, const std::vector<int>& axes, const ResizeOptions& o) {
  double scale = 0;
  if (o.sizes.empty() || o.keep_aspect_ratio_policy == "stretch") return scale;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const double own =
        static_cast<double>(known(o.sizes[k], "resize")) / static_cast<double>(known(x.extent(axes[k]), "resize"));
    if (k == 0 || (own < scale) == (o.keep_aspect_ratio_policy == "not_larger")) scale = own;
  }
  return scale;
}

// n elements times a scale. Files hold scales as f32, in which ONNX's shape inference multiplies: 10 times the f32 next
// to 0.7 is 7, though a little less in f64.
double extent_of(double n, double scale) {
  const auto narrow = static_cast<float>(scale);
  return static_cast<double>(narrow) == scale ? static_cast<double>(static_cast<float>(n) * narrow) : n * scale;
}

// The axes that change, with their positions.
std::vector<ResizedAxis> resized_axes(const Tensor& x, const ResizeOptions& o) {
  const std::vector<int> axes = axes_of(x, o);
  const double common = common_scale(x, axes, o);
  const std::string_view by = o.coordinate_transformation_mode;
  std::vector<ResizedAxis> all;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const Dim extent = x.extent(axes[k]);
    const bool crop = by == "tf_crop_and_resize";
    const double start = crop ? o.roi[k] : 0, end = crop ? o.roi[k + axes.size()] : 1;
    const bool same = o.sizes.empty() ? o.scales[k] == 1 : common == 0 && o.sizes[k] == extent;
    // Half an element is added and, by these modes, not taken away again.
    const bool moved = by == "tf_half_pixel_for_nn" && !(o.mode == "nearest" && o.nearest_mode.ends_with("floor"));
    if (same && start == 0 && end == 1 && !moved) continue;
    const std::int64_t n = known(extent, "resize");
    const double given = o.sizes.empty() ? o.scales[k] : common, in = static_cast<double>(n);
    Target to{1, 1, true};
    if (given == 0 && !o.sizes.empty()) {
      to.m = known(o.sizes[k], "resize"), to.scale = static_cast<double>(to.m) / in;
    } else {
      if (!(given > 0) || !std::isfinite(given) || in * given > 0x1p31)
        throw Error("resize", str_cat("a scale of ", given, " for axis ", axes[k], " of ", str(x.shape())));
      const double m = extent_of(in, given);
      to = {static_cast<std::int64_t>(std::floor(o.sizes.empty() ? m : m + 0.5)), given, in * given == std::floor(m)};
    }
    all.push_back(transformed(axes[k], n, to, by, start, end));
    if (n < 1 || all.back().m < 1)
      throw Error("resize", str_cat("axis ", axes[k], " of ", str(x.shape()), " to a size of ", all.back().m));
  }
  return all;
}

}  // namespace

Tensor resize(Operand x, const ResizeOptions& o) {
  const OpScope scope("resize", x.at);
  check_words(o);
  if (o.mode != "nearest") LC_RETURN_IF_HALF(x, resize(x, o));
  const std::vector<ResizedAxis> axes = resized_axes(x, o);
  const DType type = x->dtype();
  const bool whole = o.mode != "nearest" && !is_float(type);
  if (type == DType::Bool && whole)
    throw Error("resize", "between true and false there is nothing; mode \"nearest\" takes bool");
  Tensor t = whole ? prim::cast(x, size_of(type) > 2 ? DType::F64 : DType::F32) : x.tensor;
  for (const ResizedAxis& a : axes) {
    t = o.mode == "nearest" ? nearest_along(t, a, o.nearest_mode) : filtered_along(t, a, o);
    if (!a.cropped) continue;
    const Tensor at = positions(t.graph(), a);
    const Tensor outside = logical_or(lt(at, full_like(at, 0)), lt(full_like(at, static_cast<double>(a.n - 1)), at));
    t = prim::where(along(outside, full_like(t, 0), a.axis), full_like(t, o.extrapolation_value), t);
  }
  return whole ? prim::cast(round(t), type) : t;  // the cast clamps
}

}  // namespace lc
