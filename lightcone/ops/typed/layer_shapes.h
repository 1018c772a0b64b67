// Shape inference for layers: linear, convolutions, pools, attention, normalisation.
#pragma once

#include "lightcone/ops/typed/shape.h"

namespace lc::typed {

constexpr Inferred infer_linear(const Shape& x, const Shape& w) {
  Inferred r{x, {}};
  if (w.rank != 2) {
    r.error.add("linear: the weight has rank 2, not ").add(w);
    return r;
  }
  if (x.rank == 0 || differ(x.d[x.rank - 1], w.d[1]))
    r.error.add("linear: ").add(x).add(" with a weight ").add(w).add(": the last axis must be ").add(w.d[1]);
  if (x.rank > 0) r.out.d[x.rank - 1] = w.d[0];
  return r;
}

// A single number for all spatial axes, or one each: conv2d<2, 1>, conv2d<Each{2, 1}, Each{0, 1}>.
struct Each {
  int v[3] = {};
  constexpr Each(int all = 0) : v{all, all, all} {}
  constexpr Each(int a, int b, int c = 0) : v{a, b, c} {}
  constexpr int operator[](int axis) const { return v[axis]; }
  constexpr bool least(int low, int axes) const {
    for (int i = 0; i < axes; ++i)
      if (v[i] < low) return false;
    return true;
  }
  friend constexpr bool operator==(const Each&, const Each&) = default;
};
struct Window {
  Each stride = 1, padding = 0, dilation = 1;
  int groups = 1;
};
// Adds a hint to an error message if the channels seem to come last.
constexpr const char* if_channels_last(const Shape& x, const Dim& channels) {
  if (!channels.number() || x.d[1] == channels || !(x.d[x.rank - 1] == channels)) return "";
  return x.rank == 3   ? "; channels come second, [N, C, L]: permute the axes to 0, 2, 1"
         : x.rank == 4 ? "; channels come second, [N, C, H, W]: permute the axes to 0, 3, 1, 2"
                       : "; channels come second, [N, C, D, H, W]: permute the axes to 0, 4, 1, 2, 3";
}
constexpr Inferred infer_conv(const Shape& x, const Shape& w, int spatial, const Window& o) {
  Inferred r;
  r.out.push(x.d[0]), r.out.push(w.d[0]);
  if (x.rank != spatial + 2) {
    r.error.add("conv: needs [batch, channels, ").add(std::int64_t{spatial}).add(" spatial axes], not ").add(x);
    return r;
  }
  if (w.rank != x.rank) {
    r.error.add("conv: a weight ").add(w).add(" does not fit ").add(x);
    return r;
  }
  const Dim wanted = times(w.d[1], o.groups);
  if (o.groups < 1) {
    r.error.add("conv: ").add(std::int64_t{o.groups}).add(" groups: there is at least one");
    return r;
  }
  const auto of = [&]() -> Text& {
    r.error.add("conv: a weight ").add(w);
    return o.groups == 1 ? r.error : r.error.add(" in ").add(std::int64_t{o.groups}).add(" groups");
  };
  if (w.d[1].number() && x.d[1].number() && wanted.n != x.d[1].n)
    of().add(" takes ")
        .add(wanted)
        .add(" channels, and ")
        .add(x)
        .add(" has ")
        .add(x.d[1])
        .add(if_channels_last(x, wanted));
  else if (w.d[0].number() && w.d[0].n % o.groups != 0)
    of().add(": they do not divide its ").add(w.d[0]).add(" channels out");
  Shape padded = x;  // padded up to the current axis
  for (int i = 2; i < x.rank; ++i) {
    if (x.d[i].number()) padded.d[i] = static_cast<long>(x.d[i].n + 2 * o.padding[i - 2]);
    if (!padded.d[i].number() || !w.d[i].number()) {
      r.out.push(dyn);
      continue;
    }
    const std::int64_t room = padded.d[i].n - (w.d[i].n - 1) * o.dilation[i - 2] - 1;
    if (room < 0 && r.ok()) r.error.add("conv: filter ").add(w).add(" is larger than the padded image ").add(padded);
    r.out.push(room < 0 ? dyn : Dim(static_cast<long>(room / o.stride[i - 2] + 1)));
  }
  return r;
}
constexpr Inferred infer_pool(const char* op, const Shape& x, int spatial, const Each& kernel, const Window& o) {
  Inferred r{x, {}};
  if (x.rank != spatial + 2) {
    r.error.add(op).add(": needs [batch, channels, ").add(std::int64_t{spatial}).add(" spatial axes], not ").add(x);
    return r;
  }
  Shape padded = x;
  for (int i = 2; i < x.rank; ++i)
    if (x.d[i].number()) padded.d[i] = static_cast<long>(x.d[i].n + 2 * o.padding[i - 2]);
  for (int i = 2; i < x.rank; ++i) {
    const int size = kernel[i - 2], padding = o.padding[i - 2];
    const std::int64_t room = padded.d[i].n - size;
    if (2 * padding > size && r.ok())
      r.error.add(op)
          .add(": a padding of ")
          .add(std::int64_t{padding})
          .add(" is more than half of the kernel's ")
          .add(std::int64_t{size});
    else if (padded.d[i].number() && room < 0 && r.ok())
      r.error.add(op)
          .add(": a window of ")
          .add(std::int64_t{size})
          .add(" is larger than the padded image ")
          .add(padded);
    r.out.d[i] = padded.d[i].number() && room >= 0 ? Dim(static_cast<long>(room / o.stride[i - 2] + 1)) : dyn;
  }
  return r;
}

constexpr Inferred infer_attention(const Shape& q, const Shape& k, const Shape& v) {
  Inferred r{q, {}};
  bool ok = q.rank == k.rank && k.rank == v.rank && q.rank >= 3;
  for (int i = 0; ok && i < q.rank; ++i) {
    const int from_end = q.rank - i;
    if (from_end == 3) ok = !(q.d[i].number() && k.d[i].number()) || (k.d[i].n > 0 && q.d[i].n % k.d[i].n == 0);
    else if (from_end == 1) ok = !differ(q.d[i], k.d[i]);
    else if (from_end > 3) ok = !differ(q.d[i], k.d[i]);
    if (from_end <= 3 && from_end > 1) ok = ok && !differ(k.d[i], v.d[i]);
  }
  if (!ok)
    r.error.add("scaled_dot_product_attention: queries ")
        .add(q)
        .add(", keys ")
        .add(k)
        .add(" and values ")
        .add(v)
        .add(" do not fit");
  else r.out.d[q.rank - 1] = v.d[v.rank - 1];
  return r;
}

// Checks that a mask broadcasts to [..., h, s, t].
constexpr Inferred infer_scores(const Shape& q, const Shape& k, const Shape& mask) {
  Shape scores = q;
  if (q.rank > 0 && k.rank > 1) scores.d[q.rank - 1] = k.d[k.rank - 2];
  return infer_broadcast("scaled_dot_product_attention", scores, mask);
}
// Checks that a bias or statistics match the channels, axis 1 of x.
constexpr Text infer_channels(const char* op, const Shape& x, const Shape& p) {
  Text e;
  if (x.rank < 2 || p.rank != 1 || differ(x.d[1], p.d[0]))
    e.add(op).add(": statistics, a weight or a bias of ").add(p).add(" do not fit the channels of ").add(x);
  return e;
}
// Checks that weight and bias have the shape of the last axes of x.
constexpr Text infer_affine(const char* op, const Shape& x, const Shape& p) {
  Text e;
  bool ok = p.rank > 0 && p.rank <= x.rank;
  for (int i = 1; ok && i <= p.rank; ++i) ok = !differ(x.d[x.rank - i], p.d[p.rank - i]);
  if (!ok) e.add(op).add(": ").add(x).add(" does not end with the normalized shape ").add(p);
  return e;
}
constexpr Inferred infer_group_norm(const Shape& a, int groups) {
  if (a.rank < 2) return bad_axis("group_norm", 1, a);
  Inferred r{a, {}};
  const bool divides = groups == 1 || a.d[1] == dyn || (groups > 1 && a.d[1].number() && a.d[1].n % groups == 0);
  if (!divides)
    r.error.add("group_norm: ").add(std::int64_t{groups}).add(" groups do not divide ").add(a.d[1]).add(" channels");
  return r;
}

}  // namespace lc::typed
