#include "lightcone/ops/vision/regions.h"

#include "lightcone/ops/conv/sampling.h"
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace {

void check_regions(const Operand& x, const Operand& boxes, const Operand& images, int height, int width,
                   const char* op) {
  if (x->rank() != 4 || boxes->rank() != 2 || !(boxes->extent(1) == Dim(4)) || images->rank() != 1 ||
      !(images->extent(0) == boxes->extent(0)))
    throw Error(op, str_cat("an image ", str(x->shape()), ", boxes ", str(boxes->shape()), " and images ",
                            str(images->shape()), " are not [b, c, h, w], [n, 4] and [n]"));
  if (!is_float(x->dtype()) || x->dtype() != boxes->dtype())
    throw Error(op,
                str_cat("x and boxes are of one floating type, not ", name(x->dtype()), " and ", name(boxes->dtype())));
  if (!is_integer(images->dtype())) throw Error(op, str_cat("images are integers, not ", name(images->dtype())));
  if (height < 1 || width < 1) throw Error(op, str_cat(height, " x ", width, " bins: there is at least one"));
  if (known(x->extent(2), op) < 1 || known(x->extent(3), op) < 1)
    throw Error(op, "an image without pixels: " + str(x->shape()));
}

// [n] as [n, 1, ..] of another shape.
Tensor down(const Tensor& t, const Shape& to) {
  Shape s(to.size(), 1);
  s[0] = to[0];
  return t.reshape(s).expand(to);
}
// x [b, c, h, w] for each of the regions: [n, c, h, w], or [1, c, h, w] if all of them are in one image.
Tensor image_of_each(const Tensor& x, const Tensor& images) {
  return x.extent(0) == Dim(1) ? x : index_select(x, 0, images);
}

// Samples of regions along one axis of an image.
struct Samples {
  Tensor at;      // positions [n, bins, samples], within the image
  Tensor inside;  // bool: false for those that count as 0
  Tensor number;  // [n]: how many samples a bin has, 1 or more; undefined: all of them
};
Samples samples_of(const Tensor& from, const Tensor& to, std::int64_t extent, int bins, const RoiAlignOptions& o) {
  const double shift = o.aligned ? 0.5 : 0, last = static_cast<double>(extent);
  const Tensor begin = add(mul(from, o.spatial_scale), -shift), end = add(mul(to, o.spatial_scale), -shift);
  Tensor size = prim::add(end, neg(begin));
  if (!o.aligned) size = prim::maximum(size, full_like(size, 1));
  const Tensor bin = prim::div(size, full_like(size, bins));
  const Dim count = o.sampling_ratio > 0 ? Dim(o.sampling_ratio) : Dim(extent + 4);
  const Shape s{from.extent(0), bins, count};
  Graph& g = from.graph();
  const auto index = [&](int axis) { return g.index(s, Dim::index(axis, s[u(axis)]), from.dtype()); };
  const Tensor first = prim::add(down(begin, s), prim::mul(index(1), down(bin, s)));
  Samples r;
  Tensor k = index(2), number = full_like(k, std::max(o.sampling_ratio, 1)), exists;
  if (o.sampling_ratio == 0) {
    // Samples are at most one element apart, and no more than count of them lie in the image: the first ones before it
    // are skipped.
    const Tensor wanted = ceil(bin);
    r.number = prim::maximum(wanted, full_like(bin, 1));
    number = down(r.number, s);
    const Tensor apart = prim::div(down(bin, s), number);
    const Tensor before = floor(prim::div(add(neg(first), -1), prim::maximum(apart, full_like(apart, 1e-6))));
    k = prim::add(k, prim::maximum(add(before, -1), full_like(before, 0)));
    exists = prim::less_than(k, down(wanted, s));
  }
  // In this order of roundings, torchvision and ONNX Runtime agree on which samples at an edge are inside.
  const Tensor at = prim::add(first, prim::div(prim::mul(add(k, 0.5), down(bin, s)), number));
  r.inside = logical_and(le(full_like(at, -1), at), le(at, full_like(at, last)));
  if (exists.defined()) r.inside = logical_and(r.inside, exists);
  r.at = clamp(at, 0, last - 1);
  return r;
}

// The mean of linear interpolation in each bin as a matrix [n, bins, extent].
Tensor shares_of(const Samples& s, std::int64_t extent, const RoiAlignOptions& o) {
  Shape wide = s.at.shape();
  wide.push_back(extent);
  const auto along = [&](const Tensor& t) { return t.unsqueeze(3).expand(wide); };
  const Tensor element = s.at.graph().index(wide, Dim::index(3, extent), s.at.dtype());
  const Tensor far = abs(prim::add(element, neg(along(s.at))));
  const Tensor share = prim::maximum(add(neg(far), 1), full_like(far, 0));
  const Tensor total = prim::sum_reduce(prim::where(along(s.inside), share, full_like(share, 0)), 2);
  if (!s.number.defined()) return mul(total, 1.0 / o.sampling_ratio);
  return prim::div(total, down(s.number, total.shape()));
}

// Reads x at every pair of samples of y and x: [n, c, bins y, samples y, bins x, samples x].
template <class Combine>
Tensor read_pairs(const Tensor& x, const Tensor& images, const Samples& y, const Samples& w, const Combine& combine) {
  const Dim n = y.at.extent(0), c = x.extent(1), rows = y.at.extent(1) * y.at.extent(2),
            columns = w.at.extent(1) * w.at.extent(2), height = x.extent(2), width = x.extent(3);
  const Shape flat{n, rows, columns};
  const auto of_row = [&](const Tensor& t) { return t.reshape({n, rows, 1}).expand(flat); };
  const auto of_column = [&](const Tensor& t) { return t.reshape({n, 1, columns}).expand(flat); };
  const auto low_high = [&](const Tensor& at, const Dim& extent) {
    std::vector<Tap> taps = linear_taps(at);
    taps[1].place = prim::minimum(taps[1].place, full_like(taps[1].place, static_cast<double>(*extent.constant() - 1)));
    return taps;
  };
  const Tensor pixels = x.permute({1, 0, 2, 3}).reshape({c, x.extent(0) * height * width});
  const Tensor inside = logical_and(of_row(y.inside), of_column(w.inside));
  const Shape to{c, n, rows, columns};
  const auto everywhere = [&](const Tensor& t) { return t.unsqueeze(0).expand(to); };
  const auto whole = [](const Tensor& t) { return prim::cast(t, DType::I64); };
  Tensor result;
  for (const Tap& down_tap : low_high(y.at, height))
    for (const Tap& tap : low_high(w.at, width)) {
      const Tensor row =
          prim::add(prim::mul(down(whole(images), flat), x.graph().index(flat, height)), of_row(whole(down_tap.place)));
      const Tensor at = prim::add(prim::mul(row, x.graph().index(flat, width)), of_column(whole(tap.place)));
      const Tensor read = index_select(pixels, 1, at.reshape({product(flat)})).reshape(to);
      const Tensor share = prim::mul(of_row(down_tap.share), of_column(tap.share));
      const Tensor part = prim::where(everywhere(inside), prim::mul(read, everywhere(share)), full_like(read, 0));
      result = result.defined() ? combine(result, part) : part;
    }
  return result.transpose(0, 1).reshape({n, c, y.at.extent(1), y.at.extent(2), w.at.extent(1), w.at.extent(2)});
}

Tensor coordinate(const Tensor& boxes, int k) { return boxes.select(1, k); }

}  // namespace

Tensor roi_align(Operand x, Operand boxes, Operand images, const RoiAlignOptions& o) {
  const char* op = "roi_align";
  const OpScope scope(op, x.at);
  LC_RETURN_IF_EITHER_HALF(x, boxes, roi_align(x, boxes, images, o));
  check_regions(x, boxes, images, o.height, o.width, op);
  if (o.sampling_ratio < 0) throw Error(op, str_cat("a sampling_ratio of ", o.sampling_ratio));
  const std::int64_t h = known(x->extent(2), op), w = known(x->extent(3), op);
  const Samples rows = samples_of(coordinate(boxes, 1), coordinate(boxes, 3), h, o.height, o),
                columns = samples_of(coordinate(boxes, 0), coordinate(boxes, 2), w, o.width, o);
  if (!o.largest && o.sampling_ratio == 0) {
    const Tensor image = image_of_each(x, images);
    return matmul(matmul(shares_of(rows, h, o).unsqueeze(1), image),
                  shares_of(columns, w, o).unsqueeze(1).transpose(2, 3));
  }
  if (!o.largest) {
    const Tensor sum = read_pairs(x, images, rows, columns, [](auto& a, auto& b) { return prim::add(a, b); });
    return mean(sum, {3, 5});
  }
  const Dim samples = product(rows.at.shape()) * Dim(o.width) * columns.at.extent(2) * x->extent(1);
  if (o.sampling_ratio == 0 && samples.bounds().hi > 1 << 28)
    throw Error(op, str_cat("`largest` without a sampling_ratio would take ", samples, " samples: give one"));
  Tensor values = read_pairs(x, images, rows, columns, [](auto& a, auto& b) { return prim::maximum(a, b); });
  if (o.sampling_ratio == 0) {  // a sample outside is 0, one that does not exist is none
    const Shape s = values.shape();
    const auto exists = [&](const Samples& t, int axis) {
      Shape own(6, 1);
      own[0] = s[0], own[u(axis)] = s[u(axis)], own[u(axis) + 1] = s[u(axis) + 1];
      const Tensor k = t.at.graph().index(t.at.shape(), Dim::index(2, t.at.extent(2)), t.at.dtype());
      return prim::less_than(k, down(t.number, t.at.shape())).reshape(own).expand(s);
    };
    values = prim::where(logical_and(exists(rows, 2), exists(columns, 4)), values, full_like(values, -kInf));
  }
  return amax(values, {3, 5});
}

namespace {

// Elements of each bin along an axis: bool [n, bins, extent].
Tensor elements_of(const Tensor& from, const Tensor& to, std::int64_t extent, int bins, double scale) {
  const auto rounded = [&](const Tensor& t) {  // halves away from 0
    const Tensor s = mul(t, scale);
    return prim::mul(sign(s), floor(add(abs(s), 0.5)));
  };
  const Tensor begin = rounded(from), length = prim::add(rounded(to), neg(begin));
  const Tensor bin = prim::div(prim::maximum(add(length, 1), full_like(length, 1)), full_like(length, bins));
  const Shape s{from.extent(0), bins, extent};
  const auto index = [&](int axis) { return from.graph().index(s, Dim::index(axis, s[u(axis)]), from.dtype()); };
  const auto edge = [&](const Tensor& t) {
    return clamp(prim::add(t, down(begin, s)), 0, static_cast<double>(extent));
  };
  const Tensor first = edge(floor(prim::mul(index(1), down(bin, s)))),
               last = edge(ceil(prim::mul(add(index(1), 1), down(bin, s))));
  return logical_and(le(first, index(2)), prim::less_than(index(2), last));
}

// The maximum of the elements of each bin along the last axis of t [n, .., extent] -> [n, .., bins]; -infinity for
// none.
Tensor largest_of(const Tensor& t, const Tensor& elements) {
  Shape wide = t.shape(), own(wide.size() + 1, 1);
  const std::size_t last = wide.size() - 1;
  wide[0] = elements.extent(0);
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(last), elements.extent(1));
  own[0] = elements.extent(0), own[last] = elements.extent(1), own[last + 1] = elements.extent(2);
  const Tensor all = t.unsqueeze(static_cast<int>(last)).expand(wide);
  return prim::max_reduce(prim::where(elements.reshape(own).expand(wide), all, full_like(all, -kInf)),
                          static_cast<int>(last) + 1);
}

}  // namespace

Tensor roi_pool(Operand x, Operand boxes, Operand images, int height, int width, double spatial_scale) {
  const char* op = "roi_pool";
  const OpScope scope(op, x.at);
  LC_RETURN_IF_EITHER_HALF(x, boxes, roi_pool(x, boxes, images, height, width, spatial_scale));
  check_regions(x, boxes, images, height, width, op);
  const Tensor rows = elements_of(coordinate(boxes, 1), coordinate(boxes, 3), known(x->extent(2), op), height,
                                  spatial_scale),
               columns = elements_of(coordinate(boxes, 0), coordinate(boxes, 2), known(x->extent(3), op), width,
                                     spatial_scale);
  const Tensor along = largest_of(image_of_each(x, images), columns);  // [n, c, h, width]
  const Tensor r = largest_of(along.transpose(2, 3), rows).transpose(2, 3);
  return prim::where(prim::equal(r, full_like(r, -kInf)), full_like(r, 0), r);
}

Tensor deform_conv(Operand x, Operand weight, Operand offset, OptionalOperand bias, OptionalOperand mask,
                   const DeformConvOptions& o) {
  const char* op = "deform_conv";
  const OpScope scope(op, x.at);
  LC_RETURN_IF_EITHER_HALF(x, weight,
                           deform_conv(x, weight, prim::cast(offset, DType::F32),
                                       bias.given() ? OptionalOperand(prim::cast(*bias, DType::F32)) : bias,
                                       mask.given() ? OptionalOperand(prim::cast(*mask, DType::F32)) : mask, o));
  const int n = spatial_axes(x, op);
  const auto stride = per_axis(o.stride, n, op, "stride"), dilation = per_axis(o.dilation, n, op, "dilation"),
             padding = per_axis(o.padding, n, op, "padding");
  const Dim b = x->extent(0), groups = o.groups, parts = o.offset_groups;
  if (weight->rank() != n + 2 || offset->rank() != n + 2 || o.groups < 1 || o.offset_groups < 1)
    throw Error(op, str_cat("an image ", str(x->shape()), ", a weight ", str(weight->shape()), " and an offset ",
                            str(offset->shape()), " do not fit together"));
  Dim taps = 1, places = 1;
  Shape kernel, to{b, weight->extent(0)};
  for (int i = 0; i < n; ++i) {
    kernel.push_back(known(weight->extent(2 + i), op));
    taps = taps * kernel.back(), places = places * offset->extent(2 + i);
    to.push_back(offset->extent(2 + i));
  }
  const Dim in = x->extent(1), out = weight->extent(0);
  if (!(weight->extent(1) * groups == in) || !(out % groups == Dim(0)) || !(in % parts == Dim(0)))
    throw Error(op, str_cat("a weight ", str(weight->shape()), " in ", o.groups, " groups and ", o.offset_groups,
                            " groups of offsets do not fit to ", str(x->shape())));
  if (!(offset->extent(0) == b) || !(offset->extent(1) == parts * taps * Dim(n)) ||
      (mask.given() && (mask->rank() != n + 2 || !(mask->extent(1) == parts * taps))))
    throw Error(op, str_cat("an offset ", str(offset->shape()), " is not [b, ", parts * taps * Dim(n), ", ..]"));
  // Positions of each tap at each place: [b offset_groups, k..., m...].
  Shape each{b * parts};
  each.insert(each.end(), kernel.begin(), kernel.end());
  each.insert(each.end(), to.begin() + 2, to.end());
  const Tensor moves = offset->reshape({b * parts, taps, n, places});
  std::vector<std::vector<Tap>> at;
  for (int i = 0; i < n; ++i) {
    const Dim tap = Dim::index(1 + i, each[u(1 + i)]), place = Dim::index(1 + n + i, each[u(1 + n + i)]);
    const Dim still = place * Dim(stride[u(i)]) + tap * Dim(dilation[u(i)]) - padding[u(i)];
    const Tensor moved = prim::add(x->graph().index(each, still, x->dtype()), moves.select(2, i).reshape(each));
    at.push_back(linear_taps(moved.reshape({b * parts, taps * places})));
  }
  Shape image = x->shape();
  image[0] = b * parts, image[1] = in / parts;
  Tensor read = sampled(x->reshape(image), at, op);  // [b offset_groups, in / offset_groups, k m]
  if (mask.given()) read = prim::mul(read, mask->reshape({b * parts, 1, taps * places}).expand(read.shape()));
  const Tensor columns = read.reshape({b, groups, in / groups * taps, places});
  const Tensor filters = weight->reshape({1, groups, out / groups, in / groups * taps});
  const Tensor y = matmul(filters, columns).reshape(to);
  if (!bias.given()) return y;
  Shape s(to.size(), 1);
  s[1] = out;
  return y + bias->reshape(s);
}

}  // namespace lc
