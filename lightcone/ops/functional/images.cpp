// Images resized and sampled.
#include "lightcone/composites/composites.h"

#include <cmath>
#include "lightcone/ops/conv/sampling.h"
#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/internal.h"
#include "lightcone/ops/vision/resize.h"

namespace lc {
using namespace detail;

Tensor interpolate(Operand x, const InterpolateOptions& o) {
  const char* op = "interpolate";
  const OpScope scope(op, x.at);
  const int n = spatial_axes(x, op);
  const bool nearest_mode = o.mode == "nearest" || o.mode == "nearest-exact";
  const bool linear_mode =
      (o.mode == "linear" && n == 1) || (o.mode == "bilinear" && n == 2) || (o.mode == "trilinear" && n == 3);
  const bool cubic_mode = o.mode == "bicubic" && n == 2;
  if (!nearest_mode && !linear_mode && !cubic_mode && o.mode != "area")
    throw Error(op, str_cat("there is no mode \"", o.mode, "\" of ", n, " spatial axes"));
  if (o.align_corners && (nearest_mode || o.mode == "area"))
    throw Error(op, str_cat("\"", o.mode, "\" has no corners to align"));
  if (o.size.empty() == o.scale_factor.empty()) throw Error(op, "needs a size or a scale_factor, one of them");
  if (!nearest_mode) LC_RETURN_IF_HALF(x, interpolate(x, o));
  if (!nearest_mode && !is_float(x->dtype()))
    throw Error(op, str_cat("between ", name(x->dtype()), " there is nothing; convert to a floating type"));
  if (!o.scale_factor.empty() && o.scale_factor.size() != 1 && o.scale_factor.size() != u(n))
    throw Error(op, str_cat(o.scale_factor.size(), " scale factors for ", n, " spatial axes"));
  if (o.antialias && o.align_corners)
    throw Error(op, "antialias widens a filter of half pixels, without align_corners");
  if (o.antialias && !linear_mode && !cubic_mode)
    throw Error(op, str_cat("\"", o.mode, "\" has no filter to widen (antialias)"));
  const std::vector<int> given = o.size.empty() ? std::vector<int>(u(n)) : per_axis(o.size, n, op, "size");
  ResizeOptions to{.mode = nearest_mode ? "nearest"
                           : cubic_mode ? "cubic"
                                        : "linear",
                   .nearest_mode = "floor",
                   .antialias = o.antialias,
                   .exclude_outside = o.antialias};
  if (o.antialias && cubic_mode) to.cubic_coeff_a = -0.5;
  if (nearest_mode) to.coordinate_transformation_mode = o.mode == "nearest" ? "asymmetric" : "tf_half_pixel_for_nn";
  if (o.align_corners) to.coordinate_transformation_mode = "align_corners";
  std::vector<int> size;
  for (int i = 0; i < n; ++i) {
    const std::int64_t in = known(x->extent(2 + i), op);
    const double factor = o.scale_factor.empty() ? 0 : o.scale_factor[o.scale_factor.size() == 1 ? 0 : u(i)];
    const double m = factor > 0 ? std::floor(static_cast<double>(in) * factor) : given[u(i)];
    if (!(m >= 1) || in < 1) throw Error(op, str_cat(str(x->shape()), " to a size of ", m));
    to.axes.push_back(2 + i), size.push_back(static_cast<int>(m));
    const bool kept = factor > 0 && !o.recompute_scale_factor && !o.align_corners;
    if (kept) to.scales.push_back(factor);
    else to.sizes.push_back(size.back());
  }
  return o.mode == "area" ? adaptive_avg_pool(x, size) : resize(x, to);
}

namespace {

enum class Outside { Zeros, Border, Reflection };

// Reflects positions at `low` / 2 and `high` / 2, as often as needed.
Tensor reflected(const Tensor& at, std::int64_t low, std::int64_t high) {
  if (low == high) return full_like(at, 0);
  const double from = static_cast<double>(low) / 2, span = static_cast<double>(high - low) / 2;
  const Tensor off = abs(add(at, -from)), by = full_like(off, span), rest = prim::mod(off, by);
  const Tensor times = floor(prim::div(off, by)), odd = prim::mod(times, full_like(times, 2));
  return add(prim::where(prim::equal(odd, full_like(odd, 0)), rest, add(neg(rest), span)), from);
}

// Maps a coordinate in [-1, 1] to a position among n elements.
Tensor place_of(const Tensor& coordinate, std::int64_t n, bool align) {
  const auto size = static_cast<double>(n);
  return align ? mul(add(coordinate, 1), (size - 1) / 2) : mul(add(mul(add(coordinate, 1), size), -1), 0.5);
}
// Moves positions outside of n elements to their edge, or reflects them there.
Tensor moved_inside(const Tensor& at, std::int64_t n, Outside outside, bool align) {
  if (outside == Outside::Zeros) return at;
  const Tensor inside = outside == Outside::Border ? at
                        : align                    ? reflected(at, 0, 2 * (n - 1))
                                                   : reflected(at, -1, 2 * n - 1);
  return clamp(inside, 0, static_cast<double>(n - 1));
}

}  // namespace

Tensor grid_sample(Operand x, Operand grid, std::string_view mode, std::string_view padding_mode, bool align_corners) {
  const char* op = "grid_sample";
  const OpScope scope(op, x.at);
  LC_RETURN_IF_EITHER_HALF(x, grid, grid_sample(x, grid, mode, padding_mode, align_corners));
  const int n = x->rank() - 2;
  if ((n != 2 && n != 3) || grid->rank() != n + 2 || !(grid->extent(-1) == Dim(n)) ||
      !(grid->extent(0) == x->extent(0)))
    throw Error(op, str_cat("an image ", str(x->shape()), " and a grid ", str(grid->shape()),
                            " are not [b, c, h, w] and [b, oh, ow, 2] (or with one axis more)"));
  if (mode != "bilinear" && mode != "nearest" && mode != "bicubic")
    throw Error(op, str_cat("mode is \"bilinear\", \"nearest\" or \"bicubic\", not \"", mode, "\""));
  if (padding_mode != "zeros" && padding_mode != "border" && padding_mode != "reflection")
    throw Error(op, str_cat("padding_mode is \"zeros\", \"border\" or \"reflection\", not \"", padding_mode, "\""));
  if (!is_float(x->dtype()) || x->dtype() != grid->dtype())
    throw Error(op, str_cat("of one floating type, not ", name(x->dtype()), " and ", name(grid->dtype())));
  const Outside outside = padding_mode == "zeros"    ? Outside::Zeros
                          : padding_mode == "border" ? Outside::Border
                                                     : Outside::Reflection;
  Dim count = 1;
  for (int i = 0; i < n; ++i) count = count * grid->extent(1 + i);
  std::vector<std::vector<Tap>> taps;
  for (int i = 0; i < n; ++i) {
    const std::int64_t size = known(x->extent(2 + i), op);
    const Tensor coordinate = grid->slice(n + 1, n - 1 - i, n - i).reshape({x->extent(0), count});
    const Tensor at = place_of(coordinate, size, align_corners);
    if (mode != "bicubic") {
      const Tensor inside = moved_inside(at, size, outside, align_corners);
      taps.push_back(mode == "nearest" ? nearest_taps(inside) : linear_taps(inside));
      continue;
    }
    taps.push_back(cubic_taps(at, -0.75));
    for (Tap& tap : taps.back()) tap.place = moved_inside(tap.place, size, outside, align_corners);
  }
  Shape result{x->extent(0), x->extent(1)};
  for (int i = 0; i < n; ++i) result.push_back(grid->extent(1 + i));
  return sampled(x, taps, op).reshape(result);
}

Tensor affine_grid(Operand theta, const Shape& size, bool align_corners) {
  const char* op = "affine_grid";
  const OpScope scope(op, theta.at);
  LC_RETURN_IF_HALF(theta, affine_grid(theta, size, align_corners));
  const int n = static_cast<int>(size.size()) - 2;
  if ((n != 2 && n != 3) || theta->rank() != 3 || !(theta->extent(0) == size[0]) || !(theta->extent(1) == Dim(n)) ||
      !(theta->extent(2) == Dim(n + 1)))
    throw Error(op, str_cat("theta ", str(theta->shape()), " and a size ", str(size),
                            " are not [b, 2, 3] and [b, c, h, w] (or with one axis more)"));
  Shape of(size.begin() + 2, size.end());
  Dim count = 1;
  for (const Dim& d : of) count = count * d;
  Graph& g = theta->graph();
  std::vector<Tensor> rows;  // x, y, (z,) 1 for each position
  for (int i = n - 1; i >= 0; --i) {
    const auto m = static_cast<double>(known(of[u(i)], op));
    const Tensor j = g.index(of, Dim::index(i, of[u(i)]), theta->dtype());
    rows.push_back(align_corners ? (m > 1 ? add(mul(j, 2 / (m - 1)), -1) : full_like(j, 0))
                                 : add(mul(add(j, 0.5), 2 / m), -1));
  }
  rows.push_back(full(g, of, 1, theta->dtype()));
  const Tensor base = stack(rows, n).reshape({count, n + 1});
  Shape to{size[0]};
  to.insert(to.end(), of.begin(), of.end());
  to.push_back(n);
  return matmul(base, theta->transpose(1, 2)).reshape(to);
}

}  // namespace lc
