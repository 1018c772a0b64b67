// Rules for windows: reduce_window, and select_and_scatter, the derivative of pools.
#include <algorithm>

#include "lightcone/composites/composites.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

struct Windows {
  Integers size, stride, dilation, base, low, high;
};

Windows windows_of(const Call& c, std::size_t rank) {
  Windows w;
  w.size = c.integers("window_dimensions", rank, 1);
  w.stride = c.integers("window_strides", rank, 1);
  w.dilation = c.integers("window_dilations", rank, 1);
  w.base = c.integers("base_dilations", rank, 1);
  const Integers padding = c.integers("padding", 2 * rank, 0);
  for (std::size_t k = 0; k < rank; ++k) w.low.push_back(padding[2 * k]), w.high.push_back(padding[2 * k + 1]);
  const auto positive = [](const Integers& v) {
    return std::ranges::all_of(v, [](std::int64_t n) { return n >= 1 && n < (std::int64_t{1} << 40); });
  };
  if (!positive(w.size) || !positive(w.stride) || !positive(w.dilation) || !positive(w.base))
    c.refuse("sizes, strides and dilations are at least 1");
  return w;
}

// Splits axis a of t into the window's position and the elements within the window; the latter axes come after all
// others.
Tensor unfolded(const Call& c, const Tensor& t, const Windows& w) {
  Tensor x = t;
  for (int a = 0; a < t.rank(); ++a) {
    const auto k = static_cast<std::size_t>(a);
    const std::int64_t n = *x.extent(a).constant();
    if (n == 0 || w.size[k] - 1 > (n - 1) / w.dilation[k]) {  // no window fits
      Shape s = x.shape();
      s[k] = 0;
      s.push_back(w.size[k]);
      x = full(c.graph(), s, 0, t.dtype());
    } else {
      x = x.unfold(a, w.size[k], w.stride[k], w.dilation[k]);
    }
  }
  return x;
}

std::vector<Tensor> reduce_window(const Call& c) {
  const std::size_t n = c.in.size() / 2;
  if (n == 0 || c.in.size() != 2 * n) c.refuse("needs a start value for each operand");
  const Block& body = c.region(0, 2 * n, n);
  const int rank = c.x().rank();
  const Windows w = windows_of(c, static_cast<std::size_t>(rank));
  Integers between = w.base;
  for (std::int64_t& b : between) --b;
  std::vector<Tensor> xs, init;
  for (std::size_t k = 0; k < n; ++k) {
    const Tensor &x = c.in[k], &start = c.in[n + k];
    if (start.rank() != 0 || start.dtype() != x.dtype() || !(x.shape() == c.x().shape()))
      c.refuse("operands and start values do not fit");
    xs.push_back(unfolded(c, padded(x, start, w.low, w.high, between), w));
    init.push_back(start);
  }
  std::vector<int> axes;  // axes of more than one element
  for (int a = 0; a < rank; ++a)
    if (w.size[a] > 1) axes.push_back(rank + a);
  const auto squeezed = [&](Tensor t) {
    while (t.rank() > rank) t = t.squeeze(rank);
    return t;
  };
  if (const std::string reducer = simple_reducer(body); n == 1 && !reducer.empty() && reducer != "second")
    if (const Tensor t = reduced(reducer, xs[0], axes); t.defined())
      return from_start(c.reader, body, init[0], squeezed(t));
  xs = fold(c.reader, body, xs, init, std::vector(axes.rbegin(), axes.rend()));
  for (Tensor& x : xs) x = squeezed(x);
  if (axes.empty()) {
    std::vector<Tensor> pairs;
    for (std::size_t k = 0; k < n; ++k) pairs.push_back(to_shape(init[k], xs[k].shape()));
    pairs.insert(pairs.end(), xs.begin(), xs.end());
    xs = c.reader.elementwise(body, pairs);
  }
  return xs;
}

// Selects one element of each window, the first one that no other replaces, and combines the window's element of the
// source with what other windows added there.
std::vector<Tensor> select_and_scatter(const Call& c) {
  constexpr std::int64_t kMostPlaces = 4096;
  if (c.in.size() != 3) c.refuse("takes an operand, a source and a start value");
  const Tensor &x = c.in[0], &source = c.in[1], &start = c.in[2];
  const Block &select = c.region(0, 2, 1), &scatter = c.region(1, 2, 1);
  const int rank = x.rank();
  const Windows w = windows_of(c, static_cast<std::size_t>(rank));
  std::int64_t places = 1;
  for (const std::int64_t s : w.size)
    if ((places *= s) > kMostPlaces) c.refuse(str_cat("windows of more than ", kMostPlaces, " places are not read"));
  // Next to the elements, unfold their positions in the operand; -1 where the window leaves it.
  const Tensor flat = c.graph().index(x.shape(), [&] {
    Dim e = 0;
    for (int a = 0; a < rank; ++a) e = e * x.extent(a) + Dim::index(a, x.extent(a));
    return e;
  }());
  const Integers none(static_cast<std::size_t>(rank), 0);
  const auto laid_out = [&](const Tensor& t, const Tensor& outside) {
    return unfolded(c, padded(t, outside, w.low, w.high, none), w);
  };
  Tensor values = laid_out(x, scalar_like(full(c.graph(), {}, 0, x.dtype()), 0));
  Tensor positions = laid_out(flat, full(c.graph(), {}, -1, DType::I64));
  Shape windows = values.shape();
  windows.resize(static_cast<std::size_t>(rank));
  Shape together = windows;
  if (!(windows == source.shape()) || source.dtype() != x.dtype() || start.rank() != 0 || start.dtype() != x.dtype())
    c.refuse(str_cat("the source has to be of ", lc::str(windows)));
  together.push_back(places);
  values = values.reshape(together), positions = positions.reshape(together);
  Tensor best = values.select(rank, 0), where_best = positions.select(rank, 0);
  for (std::int64_t k = 1; k < places; ++k) {
    const Tensor v = values.select(rank, k), at = positions.select(rank, k);
    const Tensor outside = prim::less_than(at, full_like(at, 0)),
                 empty = prim::less_than(where_best, full_like(where_best, 0));
    const Tensor keep =
        logical_or(outside, logical_and(logical_not(empty), c.reader.elementwise(select, std::vector{best, v})[0]));
    best = prim::where(keep, best, v), where_best = prim::where(keep, where_best, at);
  }
  const Dim n = product(x.shape()), m = product(windows);
  const Tensor base = to_shape(start, {n}), index = where_best.reshape({m}), from = source.reshape({m});
  if (simple_reducer(scatter) == "stablehlo.add") return {prim::scatter_add(base, index, from, 0).reshape(x.shape())};
  c.refuse("joins by something else than a sum, which is not supported");
}

}  // namespace

void add_windows(Rules& r) {
  r["stablehlo.reduce_window"] = reduce_window;
  r["stablehlo.select_and_scatter"] = select_and_scatter;
}

}  // namespace lc::stablehlo
