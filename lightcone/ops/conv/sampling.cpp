#include "lightcone/ops/conv/sampling.h"

#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"

namespace lc::detail {

std::vector<Tap> nearest_taps(const Tensor& at) { return {{round(at), {}}}; }
std::vector<Tap> linear_taps(const Tensor& at) {
  const Tensor low = floor(at), distance = prim::add(at, neg(low));
  return {{low, add(neg(distance), 1)}, {add(low, 1), distance}};
}
std::vector<Tap> cubic_taps(const Tensor& at, double a) {
  const Tensor low = floor(at), t = prim::add(at, neg(low)), rest = add(neg(t), 1);
  const auto near = [&](const Tensor& d) {  // d <= 1
    return add(prim::mul(prim::mul(add(mul(d, a + 2), -(a + 3)), d), d), 1);
  };
  const auto far = [&](const Tensor& d) {  // 1 < d <= 2
    return add(prim::mul(add(prim::mul(add(mul(d, a), -5 * a), d), 8 * a), d), -4 * a);
  };
  return {{add(low, -1), far(add(t, 1))}, {low, near(t)}, {add(low, 1), near(rest)}, {add(low, 2), far(add(rest, 1))}};
}

Tensor sampled(const Tensor& x, const std::vector<std::vector<Tap>>& taps, const char* op) {
  const int n = x.rank() - 2;
  Dim pixels = 1;
  std::size_t combinations = 1;
  std::vector<std::int64_t> size;
  for (int i = 0; i < n; ++i) {
    size.push_back(known(x.extent(2 + i), op));
    if (size.back() < 1) throw Error(op, "an image without pixels: " + str(x.shape()));
    pixels = pixels * x.extent(2 + i);
    combinations *= taps[u(i)].size();
  }
  const Tensor rows = x.reshape({x.extent(0), x.extent(1), pixels});
  const Shape to{x.extent(0), x.extent(1), taps[0][0].place.extent(1)};
  Tensor sum;
  for (std::size_t k = 0; k < combinations; ++k) {
    Tensor at, inside, share;
    std::size_t rest = k;
    for (int i = 0; i < n; ++i) {
      const Tap& tap = taps[u(i)][rest % taps[u(i)].size()];
      rest /= taps[u(i)].size();
      const Tensor place = prim::cast(tap.place, DType::I64), extent = full_like(place, size[u(i)]);
      const Tensor fits = logical_and(prim::less_than(full_like(place, -1), place), prim::less_than(place, extent));
      at = i ? prim::add(prim::mul(at, extent), place) : place;
      inside = i ? logical_and(inside, fits) : fits;
      if (tap.share.defined()) share = share.defined() ? prim::mul(share, tap.share) : tap.share;
    }
    const auto everywhere = [&](const Tensor& t) { return t.unsqueeze(1).expand(to); };
    Tensor part = prim::gather(rows, everywhere(prim::where(inside, at, full_like(at, -1))), 2);
    if (share.defined())
      part = prim::where(everywhere(inside), prim::mul(part, everywhere(prim::cast(share, part.dtype()))),
                         full_like(part, 0));
    sum = k ? prim::add(sum, part) : part;
  }
  return sum;
}

}  // namespace lc::detail
