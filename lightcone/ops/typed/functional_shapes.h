// Shape inference for windows, images and embedding bags of torch.nn.functional.
#pragma once

#include "lightcone/ops/typed/layer_shapes.h"

namespace lc::typed {

// A named extent is divisible only by 1: its factors are unknown.
constexpr bool divides(int n, const Dim& d) { return n == 1 || d == dyn || (d.number() && d.n % n == 0); }

constexpr Inferred infer_glu(const Shape& a, int axis) {
  if (!is_axis(axis, a)) return bad_axis("glu", axis, a);
  const int at = wrap(axis, a.rank);
  Inferred r{a, {}};
  Dim& d = r.out.d[at];
  if (!divides(2, d)) return refused(a, "glu", "axis ", at, " of ", a, " has no halves");
  d = d.number() ? Dim(static_cast<long>(d.n / 2)) : dyn;
  return r;
}
constexpr Inferred infer_prelu(const Shape& a, const Shape& w) {
  const Dim n = w.rank == 0 ? Dim(1) : w.d[0];
  if (w.rank > 1 || (!(n == Dim(1)) && n != dyn && (a.rank < 2 || differ(a.d[1], n))))
    return refused(a, "prelu", "a weight ", w, " does not fit the channels of ", a);
  return {a, {}};
}
constexpr Inferred infer_along_both(const char* op, const Shape& a, const Shape& b, int axis, bool keep) {
  const Inferred r = infer_broadcast(op, a, b);
  return r.ok() ? infer_reduce(op, r.out, &axis, 1, keep) : r;
}
constexpr Inferred infer_instance_norm(const Shape& x) {
  if (x.rank < 2) return refused(x, "instance_norm", "needs [batch, channels, ...], not ", x);
  if (x.rank < 3) return refused(x, "instance_norm", "needs [batch, channels, spatial axes], not ", x);
  return {x, {}};
}
constexpr Inferred infer_rope(const Shape& x, const Shape& cos, const Shape& sin) {
  bool same = cos.rank == sin.rank && cos.rank > 0 && x.rank > 0;
  for (int i = 0; i < cos.rank && same; ++i) same = !differ(cos.d[i], sin.d[i]);
  if (!same) return refused(x, "rope", "cosines ", cos, " and sines ", sin, " do not fit ", x);
  const Dim last = x.d[x.rank - 1], half = cos.d[cos.rank - 1];
  if (!divides(2, last) || (last.number() && half.number() && 2 * half.n != last.n))
    return refused(x, "rope", "angles of ", cos, " do not fit ", x);
  return {x, {}};
}

// ---- transposed convolutions, adaptive pools, pixels ----------------------------------------------------
constexpr Inferred infer_conv_transpose(const Shape& x, const Shape& w, int spatial, const Window& o,
                                        const Each& output_padding) {
  const char* op = "conv_transpose";
  if (x.rank != spatial + 2) return refused(x, op, "needs [batch, channels, ", spatial, " spatial axes], not ", x);
  if (w.rank != x.rank)
    return refused(x, op, "a weight ", w, " does not fit ", x,
                   ": it is [channels in, channels out / groups, an extent for each spatial axis]");
  if (differ(w.d[0], x.d[1]))
    return refused(x, op, "a weight ", w, " takes ", w.d[0], " channels in, and ", x, " has ", x.d[1],
                   differ(w.d[1], x.d[1]) ? "" : ": its first axis is the channels in, not out");
  if (o.groups < 1 || !divides(o.groups, x.d[1])) return refused(x, op, o.groups, " groups do not divide ", x);
  Inferred r{x, {}};
  r.out.d[1] = times(o.groups, w.d[1]);
  for (int i = 0; i < spatial; ++i) {
    const int most = o.stride[i] > o.dilation[i] ? o.stride[i] : o.dilation[i];
    if (w.d[2 + i] == Dim(0) || w.d[2 + i].named())
      return refused(x, op, "a filter ", w, " needs extents of 1 or more that are numbers");
    if (output_padding[i] < 0 || output_padding[i] >= most)
      return refused(x, op, "output_padding is smaller than the stride or the dilation");
    if (!x.d[2 + i].number() || !w.d[2 + i].number()) {
      r.out.d[2 + i] = dyn;
      continue;
    }
    const std::int64_t size = (x.d[2 + i].n - 1) * o.stride[i] + (w.d[2 + i].n - 1) * o.dilation[i] + 1 +
                              output_padding[i] - 2 * o.padding[i];
    if (size < 1) return refused(x, op, "a padding of ", o.padding[i], " leaves nothing of ", x);
    r.out.d[2 + i] = static_cast<long>(size);
  }
  return r;
}
constexpr Inferred infer_to_size(const char* op, const Shape& x, int spatial, const Each& size) {
  if (x.rank != spatial + 2)
    return refused(x, op, "needs [batch, channels, ", spatial, spatial == 1 ? " spatial axis" : " spatial axes",
                   "], not ", x);
  Inferred r{x, {}};
  for (int i = 0; i < spatial; ++i) {
    if (x.d[2 + i].named() || size[i] < 1) return refused(x, op, "needs known extents and outputs of 1 or more");
    r.out.d[2 + i] = size[i];
  }
  return r;
}
constexpr Inferred infer_pixels(const char* op, const Shape& x, int factor, bool to_pixels) {
  if (factor < 1 || x.rank < 3) return refused(x, op, "a factor of ", factor, " for ", x);
  Inferred r{x, {}};
  const int square = factor * factor;
  Dim &c = r.out.d[x.rank - 3], &h = r.out.d[x.rank - 2], &w = r.out.d[x.rank - 1];
  const auto part = [](const Dim& d, int by) {
    return d.number() ? Dim(static_cast<long>(d.n / by)) : by == 1 ? d : dyn;
  };
  if (to_pixels) {
    if (!divides(square, c)) return refused(x, op, square, " does not divide the channels of ", x);
    c = part(c, square), h = times(h, factor), w = times(w, factor);
    return r;
  }
  if (!divides(factor, h) || !divides(factor, w)) return refused(x, op, factor, " does not divide ", x);
  c = times(c, square), h = part(h, factor), w = part(w, factor);
  return r;
}
constexpr Inferred infer_channel_shuffle(const Shape& x, int groups) {
  if (x.rank < 3) return refused(x, "channel_shuffle", "needs [b, c, n...], not ", x);
  if (groups < 1 || !divides(groups, x.d[1]))
    return refused(x, "channel_shuffle", groups, " groups of ", x.d[1], " channels");
  return {x, {}};
}
constexpr Inferred infer_local_response_norm(const Shape& x) {
  return x.rank < 3 ? refused(x, "local_response_norm", "needs [b, c, n...], not ", x) : Inferred{x, {}};
}

// ---- windows -------------------------------------------------------------------------------------------
struct Columns {
  Each kernel, dilation = 1, padding = 0, stride = 1;
  constexpr int area() const { return kernel[0] * kernel[1]; }
};
// Returns the number of windows in an image of h x w, as [windows].
constexpr Inferred infer_windows(const char* op, const Dim& h, const Dim& w, const Columns& o) {
  Inferred r;
  r.out.push(1);
  for (int i = 0; i < 2; ++i) {
    const Dim n = i == 0 ? h : w;
    if (n.named()) return refused(r.out, op, "needs an extent that is known when the graph is built, not ", n);
    if (!n.number()) {
      r.out.d[0] = dyn;
      continue;
    }
    const std::int64_t reach = o.dilation[i] * (o.kernel[i] - 1) + 1, image = n.n + 2 * o.padding[i];
    if (reach > image) return refused(r.out, op, "a window of ", reach, " in an image of ", image);
    r.out.d[0] = times(r.out.d[0], static_cast<long>((image - reach) / o.stride[i] + 1));
  }
  return r;
}
constexpr Inferred infer_unfold(const Shape& x, const Columns& o) {
  if (x.rank != 3 && x.rank != 4) return refused(x, "unfold", "needs [b, c, h, w], not ", x);
  const Inferred windows = infer_windows("unfold", x.d[x.rank - 2], x.d[x.rank - 1], o);
  if (!windows.ok()) return windows;
  Inferred r{x, {}};
  --r.out.rank;
  r.out.d[x.rank - 3] = times(x.d[x.rank - 3], o.area());
  r.out.d[x.rank - 2] = windows.out.d[0];
  return r;
}
constexpr Inferred infer_fold(const Shape& x, const Each& output, const Columns& o) {
  if (x.rank != 2 && x.rank != 3) return refused(x, "fold", "needs [b, c kh kw, windows], not ", x);
  const Inferred windows = infer_windows("fold", output[0], output[1], o);
  if (!windows.ok()) return windows;
  const Dim c = x.d[x.rank - 2];
  if (!divides(o.area(), c) || differ(x.d[x.rank - 1], windows.out.d[0]))
    return refused(x, "fold", (x.rank == 3 ? x : infer_unsqueeze(x, 0).out), " is not [b, channels * ", o.area(), ", ",
                   windows.out.d[0], "]");
  Inferred r{x, {}};
  r.out.d[x.rank - 2] = c.number() ? Dim(static_cast<long>(c.n / o.area())) : dyn;
  r.out.d[x.rank - 1] = output[0];
  r.out.push(output[1]);
  return r;
}
constexpr Inferred infer_max_unpool(const Shape& x, const Shape& indices, const Each& kernel, const Each& stride,
                                    const Each& padding) {
  if (x.rank < 3 || x.rank > 5)
    return refused(x, "max_unpool", "needs [batch, channels, 1 to 3 spatial axes], not ", x);
  Inferred r{x, {}};
  for (int i = 0; i < x.rank; ++i)
    if (x.rank != indices.rank || differ(x.d[i], indices.d[i]))
      return refused(x, "max_unpool", "indices are integers of ", x, ", not ", indices);
  for (int i = 2; i < x.rank; ++i) {
    Dim& d = r.out.d[i];
    d = d.number() ? Dim(static_cast<long>((d.n - 1) * stride[i - 2] - 2 * padding[i - 2] + kernel[i - 2])) : dyn;
  }
  return r;
}

// ---- images --------------------------------------------------------------------------------------------
constexpr Inferred infer_interpolate(const Shape& x, const Each& size) {
  if (x.rank < 3 || x.rank > 5)
    return refused(x, "interpolate", "needs [batch, channels, 1 to 3 spatial axes], not ", x);
  Inferred r{x, {}};
  for (int i = 2; i < x.rank; ++i) {
    if (x.d[i].named()) return refused(x, "interpolate", "needs known extents");
    if (size[i - 2] < 1 || x.d[i] == Dim(0)) return refused(x, "interpolate", x, " to a size of ", size[i - 2]);
    r.out.d[i] = size[i - 2];
  }
  return r;
}
constexpr Inferred infer_grid_sample(const Shape& x, const Shape& grid) {
  const int n = x.rank - 2;
  if ((n != 2 && n != 3) || grid.rank != n + 2 || differ(grid.d[n + 1], n) || differ(grid.d[0], x.d[0]))
    return refused(x, "grid_sample", "an image ", x, " and a grid ", grid,
                   " are not [b, c, h, w] and [b, oh, ow, 2] (or with one axis more)");
  Inferred r{x, {}};
  for (int i = 0; i < n; ++i) r.out.d[2 + i] = grid.d[1 + i];
  return r;
}
constexpr Inferred infer_affine_grid(const Shape& theta, const Shape& size) {
  const int n = size.rank - 2;
  if ((n != 2 && n != 3) || theta.rank != 3 || differ(theta.d[0], size.d[0]) || differ(theta.d[1], n) ||
      differ(theta.d[2], n + 1))
    return refused(size, "affine_grid", "theta ", theta, " and a size ", size,
                   " are not [b, 2, 3] and [b, c, h, w] (or with one axis more)");
  Inferred r;
  r.out.push(size.d[0]);
  for (int i = 0; i < n; ++i) r.out.push(size.d[2 + i]);
  r.out.push(n);
  return r;
}

// ---- bags ----------------------------------------------------------------------------------------------
// ids are [b, n], or [n] with offsets [b].
constexpr Inferred infer_bags(const Shape& ids, const Shape& weight, const Shape* offsets, bool include_last) {
  if (ids.rank != (offsets ? 1 : 2))
    return offsets ? refused(ids, "embedding_bag", "ids that offsets cut are [n], not ", ids)
                   : refused(ids, "embedding_bag", "ids are [b, n], or [n] with offsets; not ", ids);
  if (weight.rank != 2) return refused(ids, "embedding_bag", "the weight has rank 2, not ", weight);
  if (offsets && offsets->rank != 1) return refused(ids, "embedding_bag", "offsets are integers [b], not ", *offsets);
  Inferred r;
  r.out.push(offsets ? plus(offsets->d[0], include_last ? -1 : 0) : ids.d[0]);
  r.out.push(weight.d[1]);
  return r;
}
constexpr Text infer_sample_weights(const Shape& ids, const Shape& weights) {
  bool same = ids.rank == weights.rank;
  for (int i = 0; i < ids.rank && same; ++i) same = !differ(ids.d[i], weights.d[i]);
  return same ? Text() : refused(ids, "embedding_bag", "weights ", weights, " for ids ", ids).error;
}

}  // namespace lc::typed
