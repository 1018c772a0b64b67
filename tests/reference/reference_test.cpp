// The f64 judge reads views and sums products exactly as their definitions do, and its error bounds neither explode nor
// forgive.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/ops.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

using Ints = std::vector<std::int64_t>;

// Returns the base position of each element by undoing the view operations one after the other.
Ints element_by_element(const View& view, const Bindings& env) {
  Ints from = numbers(view.base(), env);
  Ints at(static_cast<std::size_t>(count(from)));
  std::iota(at.begin(), at.end(), 0);
  for (const Move& m : view.moves()) {
    const Ints to = numbers(m.to, env), before = numbers(m.before, env);
    Ints next(static_cast<std::size_t>(count(to)), -1), out(to.size(), 0);
    for (std::size_t flat = 0; flat < next.size(); ++flat) {
      Ints in(from.size());
      for (std::size_t i = 0; i < in.size(); ++i) switch (m.kind) {
          case MoveKind::Permute: in[static_cast<std::size_t>(m.axes[i])] = out[i]; break;
          case MoveKind::Expand: in[i] = from[i] == 1 ? 0 : out[i]; break;
          case MoveKind::Slice: in[i] = before[i] + out[i] * m.step[i]; break;
          case MoveKind::Pad: in[i] = out[i] - before[i]; break;
          case MoveKind::Unfold:
            in[i] = static_cast<int>(i) == m.axes[0] ? out[i] * m.step[0] + out.back() * m.step[1] : out[i];
            break;
          case MoveKind::Reshape: break;
        }
      std::int64_t pos = 0;
      bool inside = true;
      for (std::size_t i = 0; i < in.size(); ++i) {
        inside = inside && in[i] >= 0 && in[i] < from[i];
        pos = pos * from[i] + in[i];
      }
      if (m.kind == MoveKind::Reshape) pos = static_cast<std::int64_t>(flat);
      if (inside || m.kind == MoveKind::Reshape) next[flat] = at[static_cast<std::size_t>(pos)];
      for (std::size_t i = to.size(); i-- > 0;) {
        if (++out[i] < to[i]) break;
        out[i] = 0;
      }
    }
    at = std::move(next), from = to;
  }
  return at;
}

class Views {
 public:
  explicit Views(std::uint64_t seed) : random_(seed), empty_(seed % 4 == 3) {}
  View draw() {
    Shape base;
    for (int i = below(4); i >= 0; --i) base.push_back(empty_ && below(4) == 0 ? 0 : 1 + below(6));
    View v(base);
    for (int i = 1 + below(10); i > 0; --i) v = moved(v);
    return v;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  View moved(const View& v) {
    const Shape s = v.shape();
    const int rank = static_cast<int>(s.size()), axis = rank ? below(rank) : 0;
    const auto extent = [&](int a) { return *s[static_cast<std::size_t>(a)].constant(); };
    Shape zero(s.size(), 0), to = s;
    switch (below(6)) {
      case 0: {
        std::vector<int> axes(s.size());
        std::iota(axes.begin(), axes.end(), 0);
        std::shuffle(axes.begin(), axes.end(), random_);
        return v.permute(axes);
      }
      case 1: {
        for (Dim& d : to)
          if (d == Dim(1)) d = empty_ ? below(5) : 1 + below(4);
        return v.expand(to);
      }
      case 2: {  // merges two axes, or splits one
        if (rank >= 2 && axis + 1 < rank) {
          to[static_cast<std::size_t>(axis)] = extent(axis) * extent(axis + 1);
          to.erase(to.begin() + axis + 1);
        } else if (rank >= 1 && extent(axis) % 2 == 0) {
          to[static_cast<std::size_t>(axis)] = extent(axis) / 2;
          to.insert(to.begin() + axis + 1, 2);
        } else {
          to.push_back(1);
        }
        return v.reshape(to);
      }
      case 3: {
        if (rank > 0 && empty_ && below(3) == 0) {  // an empty slice
          to[static_cast<std::size_t>(axis)] = 0;
          return v.slice(zero, to, std::vector<std::int64_t>(s.size(), 1));
        }
        if (rank == 0 || extent(axis) < 2) return v;
        std::vector<std::int64_t> step(s.size(), 1);
        if (below(2)) {  // reversed
          step[static_cast<std::size_t>(axis)] = -1, zero[static_cast<std::size_t>(axis)] = extent(axis) - 1;
        } else {
          zero[static_cast<std::size_t>(axis)] = 1, to[static_cast<std::size_t>(axis)] = extent(axis) - 1;
        }
        return v.slice(zero, to, step);
      }
      case 4: {
        if (rank == 0) return v;
        Shape after = zero;
        zero[static_cast<std::size_t>(axis)] = below(3), after[static_cast<std::size_t>(axis)] = below(3);
        return v.pad(zero, after);
      }
      default: {
        if (rank == 0 || rank > 5 || extent(axis) < 1) return v;
        const auto size = 1 + below(static_cast<int>(std::min<std::int64_t>(extent(axis), 3)));
        return v.unfold(axis, size, 1 + below(2), 1);
      }
    }
  }
  std::mt19937_64 random_;
  bool empty_;  // allows axes without elements
};

bool same_bits(const Value& a, const Value& b) {
  if (a.shape != b.shape || a.i != b.i || a.f.size() != b.f.size()) return false;
  for (std::size_t k = 0; k < a.f.size(); ++k)
    if (!(std::isnan(a.f[k]) && std::isnan(b.f[k])) &&
        std::bit_cast<std::uint64_t>(a.f[k]) != std::bit_cast<std::uint64_t>(b.f[k]))
      return false;
  return true;
}

Results judged(const Graph& g, std::uint64_t seed = 1) {
  return interpret(g, fitting_inputs(g, {}, seed, false), {}, Rounding::Wide, true);
}

}  // namespace

TEST(Access, IsWhatPullingBackEachElementGives) {
  int padded = 0, from_nothing = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const View v = Views(seed).draw();
    if (*product(v.shape()).constant() > 20000) continue;
    Ints want = element_by_element(v, {}), got = Access(v, {}).positions();
    for (std::int64_t& p : got) p = std::max<std::int64_t>(p, -1);
    ASSERT_EQ(want, got) << "seed " << seed;
    padded += std::count(want.begin(), want.end(), -1) > 0;
    from_nothing += !want.empty() && *product(v.base()).constant() == 0;
  }
  EXPECT_GT(padded, 2500);
  EXPECT_GT(from_nothing, 100);
}

// One term of the position follows the reshape directly, the other must be materialized first. It is materialized in
// the old shape, on whose axes all terms still depend.
TEST(Access, ReshapeOfSeveralTerms) {
  const View v = View({63, 3}).slice({0, 2}, {63, 3}, {1, -1}).unfold(1, 1, 2, 1).reshape({2, 63});
  const Ints got = Access(v, {}).positions();
  ASSERT_EQ(got.size(), 126u);
  for (std::int64_t k = 0; k < 126; ++k) ASSERT_EQ(got[static_cast<std::size_t>(k)], k / 2 * 3 + 2 - k % 2 * 2) << k;
}

// A view of a view equals the composed view.
TEST(Access, ViewsOfViews) {
  Graph g;
  const Tensor x = g.input("x", {4, 6}), a = x.pad(1, 1, 1).unfold(1, 3, 1, 1);
  Access access(a.edge().view, {});
  const View behind = View(a.shape()).permute({2, 0, 1}).reshape({12, 6});
  access.apply(behind, {});
  EXPECT_TRUE(access.shares(0, 1));
  Ints got = access.positions(), want = element_by_element(a.edge().view.then(behind), {});
  for (std::int64_t& p : got) p = std::max<std::int64_t>(p, -1);
  EXPECT_EQ(got, want);
}

// A product that only sums read is never materialized. The bits equal those of a materialized one.
TEST(Reference, SummedProductsAreThoseLaidOut) {
  int products = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const Graph g = random_graph(seed, {.nodes = 8});
    const Bindings env = random_bindings(g, seed);
    const auto inputs = random_inputs(g, env, seed, seed % 3 == 0);
    Graph kept = g.clone();  // in this graph every product is an output, so all are materialized
    const auto live = g.live();
    for (NodeId id = 0; id < g.size(); ++id)
      if (live[id] && g[id].op == Op::Mul) kept.root(str_cat("product", id), {id, View(g[id].shape)}), ++products;
    const Results a = interpret(g, inputs, env, Rounding::Storage), b = interpret(kept, inputs, env, Rounding::Storage);
    for (const auto& [name, v] : a.outputs)
      ASSERT_TRUE(same_bits(v, b.outputs.at(name))) << "seed " << seed << "\n" << g.str();
  }
  EXPECT_GT(products, 500);
}

// Rounding errors cancel in a softmax and in a norm: ten of them in sequence do not widen the bounds.
TEST(Reference, BoundsDoNotGrowThroughSoftmaxAndNorms) {
  Graph g;
  Tensor x = g.input("x", {6, 32});
  for (int i = 0; i < 10; ++i) {
    const Tensor w = g.input(str_cat("w", i), {32, 32});
    x = layer_norm(x + matmul(softmax(matmul(x, w), 1), w), {x.extent(-1)});
  }
  g.output("y", x);
  const Value y = judged(g).outputs.at("y");
  for (std::size_t k = 0; k < y.size(); ++k) EXPECT_LT(y.error_at(k), 2e-5) << k;
  for (std::size_t k = 0; k < y.size(); ++k) EXPECT_GT(y.error_at(k), 1e-8) << k;  // no f32 result is closer
}

// For many terms that do not cancel, the bound relative to the sum does not grow with the count: a single accumulator,
// which is off by 6e-4 and more for a million tenths, is refused (docs/accuracy.md).
TEST(Reference, LongSumsAreHeldToBlocks) {
  for (const std::int64_t n : {20'000, 200'000}) {
    Graph g;
    const Tensor x = g.input("x", {n}), w = g.input("w", {n});
    g.output("sum", sum(x)), g.output("dot", sum(x * w));
    std::map<std::string, Value> in{{"x", make_value(DType::F32, {n})}, {"w", make_value(DType::F32, {n})}};
    for (double& v : in["x"].f) v = static_cast<double>(0.1f);
    for (double& v : in["w"].f) v = static_cast<double>(0.7f);
    const Results r = interpret(g, in, {}, Rounding::Wide, true);
    for (const char* name : {"sum", "dot"}) {
      const Value& y = r.outputs.at(name);
      EXPECT_LT(4 * y.error_at(0), 1.2e-5 * y.f[0]) << name << " of " << n;
      EXPECT_GT(4 * y.error_at(0), 1e-7 * y.f[0]) << name << " of " << n;
    }
  }
}

// If a comparison is a tie within rounding but both results agree, the value is decided; otherwise it is undecided.
TEST(Reference, EdgesThatDoNotMatter) {
  Graph g;
  const Tensor x = g.input("x", {64}), zero = full_like(x, 0);
  // 0 plus a rounding error
  const Tensor edge = prim::add(prim::mul(x, full_like(x, 3)), prim::mul(x, full_like(x, -3)));
  g.output("continuous", prim::add(x, prim::where(prim::less_than(zero, edge), edge, zero)));
  g.output("jump", prim::where(prim::less_than(zero, edge), x, zero));
  g.output("count", prim::cast(prim::less_than(zero, edge), DType::I32));
  const Results r = judged(g);
  int jumps = 0;
  for (std::size_t k = 0; k < 64; ++k) {
    EXPECT_LT(r.outputs.at("continuous").error_at(k), 1e-5);
    EXPECT_GE(r.outputs.at("jump").error_at(k), 0.9 * std::fabs(r.outputs.at("continuous").at(k)));
    jumps += std::isinf(r.outputs.at("count").error_at(k));
  }
  EXPECT_EQ(jumps, 64);
}

// Indices and counts in floating point are exact, and so are comparisons with them.
TEST(Reference, WholeNumbersAreExact) {
  Graph g;
  const Tensor i = g.index({9}, Dim::index(0, 9), DType::F32);
  const Tensor twice = prim::add(prim::mul(i, full_like(i, 2)), full_like(i, 1));
  g.output("hit", prim::equal(twice, full_like(i, 7)));
  const Value hit = judged(g).outputs.at("hit");
  EXPECT_TRUE(hit.error.empty() || *std::max_element(hit.error.begin(), hit.error.end()) == 0);
  EXPECT_EQ(hit.i[3], 1);
}

// If the sign of an overflow depends on the order of a sum, the value is undecided. Masks are no overflow.
TEST(Reference, OverflowAndMasks) {
  Graph g;
  const Tensor x = g.input("x", {2, 4});
  Value big = make_value(DType::F32, {2, 4});
  big.f = {3e38, 3e38, -3e38, -3e38, 1, 2, 3, 4};
  g.output("sum", prim::sum_reduce(x, 1));
  const Tensor masked = prim::add(x, prim::mul(full_like(x, 1), full_like(x, -3.4028234663852886e38)));
  g.output("masked", softmax(prim::where(g.index({2, 4}, less(Dim::index(1, 4), 2), DType::Bool), x, masked), 1));
  const Results r = interpret(g, {{"x", big}}, {}, Rounding::Wide, true);
  EXPECT_TRUE(std::isinf(r.outputs.at("sum").error_at(0)));
  EXPECT_LT(r.outputs.at("sum").error_at(1), 1e-5);
  const Value& y = r.outputs.at("masked");
  for (std::size_t k = 4; k < 8; ++k) EXPECT_LT(y.error_at(k), 1e-5) << k;
  EXPECT_NEAR(y.f[4] + y.f[5], 1, 1e-6);
}

// An infinity among terms that overflow to the opposite infinity by themselves: the sum is NaN in some orders and that
// infinity in others.
TEST(Reference, InfinitiesAmongTermsThatOverflow) {
  Graph g;
  const Tensor x = g.input("x", {5, 3});
  Value v = make_value(DType::F32, {5, 3});
  v.f = {-kInf, 3e38, 3e38,  // NaN if the finite terms are added first
         kInf,  3e38, 3e38, -kInf, 3e37, 3e38, -kInf, -3e38, 1e38, kInf, -2e38, -2e38};
  g.output("sum", prim::sum_reduce(x, 1));
  const Tensor huge = prim::mul(x, full_like(x, 1e10));  // a product that overflows before it is added
  g.output("product", prim::sum_reduce(huge, 1));
  const Results r = interpret(g, {{"x", v}}, {}, Rounding::Wide, true);
  const Value &sum = r.outputs.at("sum"), &product = r.outputs.at("product");
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_TRUE(std::isinf(sum.f[k])) << k;
    EXPECT_EQ(sum.error_at(k), k == 0 || k == 4 ? kInf : 0) << k;
    EXPECT_EQ(product.error_at(k), k == 1 ? 0 : kInf) << k;
  }
}

// A value that may overflow may tie with an infinity, and ties are ordered by position: the order of such values is
// undecided.
TEST(Reference, WhatMayTieWithAnInfinityHasNoPlace) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  Value v = make_value(DType::F32, {2, 3});
  v.f = {1091, 1026, 963,  // in f32 all are infinite, in double precision the last is not
         2000, 3000, 5};
  g.output("order", prim::argsort(prim::exp2(x), 1));
  const Value order = interpret(g, {{"x", v}}, {}, Rounding::Wide, true).outputs.at("order");
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(order.error_at(k), kInf) << k;
  for (std::size_t k = 3; k < 6; ++k) EXPECT_EQ(order.error_at(k), 0) << k;
  EXPECT_EQ((Ints{order.i.begin() + 3, order.i.end()}), (Ints{2, 0, 1}));
}

// If an angle is uncertain by more than a period, its sine may be any number, wherever the samples lie.
TEST(Reference, SinesOfLargeAnglesAreUndecided) {
  Graph g;
  const Tensor x = g.input("x", {4096}), angle = exp2(x * 3.0);
  g.output("sin", sin(angle));
  g.output("cos", cos(angle));
  g.output("squared", square(sin(angle)));
  Value v = make_value(DType::F32, {4096});
  for (std::size_t k = 0; k < v.size(); ++k) v.f[k] = 9 + static_cast<float>(k) * 1e-4f;
  const Results r = interpret(g, {{"x", v}}, {}, Rounding::Wide, true);
  for (const char* name : {"sin", "cos"}) {
    const Value& y = r.outputs.at(name);
    for (std::size_t k = 0; k < y.size(); ++k) ASSERT_GE(y.error_at(k), 1 + std::fabs(y.at(k)) - 1e-6) << name << k;
  }
  const Value& y = r.outputs.at("squared");
  for (std::size_t k = 0; k < y.size(); ++k) ASSERT_GE(y.error_at(k), std::max(y.at(k), 1 - y.at(k)) - 1e-6) << k;
}

// A number that may overflow is certainly not zero.
TEST(Reference, WhatMayOverflowIsTrue) {
  Graph g;
  const Tensor x = g.input("x", {4}), squared = prim::mul(x, x), truth = prim::cast(squared, DType::Bool);
  g.output("truth", truth);
  g.output("chosen", prim::where(truth, squared, full_like(x, -1)));
  Value v = make_value(DType::F32, {4});
  v.f = {1e30, -3e25, 1e19, 0};
  const Results r = interpret(g, {{"x", v}}, {}, Rounding::Wide, true);
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(r.outputs.at("truth").error_at(k), 0) << k;
  for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(r.outputs.at("chosen").error_at(k), kInf) << k;
}

// The bits of a rounded number may be its neighbour's. Those of a NaN and of a zero are undecided.
TEST(Reference, BitsAreKnownWhereTheNumberIs) {
  Graph g;
  const Tensor x = g.input("x", {4});
  prim::bitcast(x, DType::I32).retrieve("of x");
  prim::bitcast(prim::recip(x), DType::U32).retrieve("of 1 / x");
  prim::bitcast(prim::bitcast(x, DType::I32), DType::F32).retrieve("there and back");
  Value v = make_value(DType::F32, {4});
  v.f = {3, kNaN, -0.0, -2.5};
  const auto r = interpret(g, {{"x", v}}, {}, Rounding::Wide, true).outputs;
  const std::vector<bool> open{false, true, true, false};
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(std::isinf(r.at("of x").error_at(k)), open[k]) << k;
    EXPECT_EQ(std::isinf(r.at("of 1 / x").error_at(k)), k != 2) << k;  // an infinity is exact
    if (open[k]) continue;
    EXPECT_EQ(r.at("of x").i[k], std::bit_cast<std::int32_t>(static_cast<float>(v.f[k])));
    EXPECT_EQ(r.at("there and back").f[k], v.f[k]);
    EXPECT_EQ(r.at("there and back").error_at(k), 0);
  }
}

// u64 values are stored in signed integers, but compare as unsigned.
TEST(Reference, U64HasAnOrderOfItsOwn) {
  Graph g;
  const Tensor x = g.input("x", {3}, DType::U64), y = g.input("y", {3}, DType::U64);
  prim::less_than(x, y).retrieve("less");
  prim::maximum(x, y).retrieve("maximum");
  prim::max_reduce(x, 0).retrieve("max");
  prim::div(y, x).retrieve("div");
  prim::cast(x, DType::F64).retrieve("number");
  prim::argsort(x, 0).retrieve("order");
  std::map<std::string, Value> in{{"x", make_value(DType::U64, {3})}, {"y", make_value(DType::U64, {3})}};
  in["x"].i = {1, -1, INT64_MIN}, in["y"].i = {-1, 2, INT64_MIN};
  const auto r = interpret(g, in).outputs;
  EXPECT_EQ(r.at("less").i, (Ints{1, 0, 0}));
  EXPECT_EQ(r.at("maximum").i, (Ints{-1, -1, INT64_MIN}));
  EXPECT_EQ(r.at("max").i, (Ints{-1}));
  EXPECT_EQ(r.at("div").i, (Ints{-1, 0, 1}));
  EXPECT_EQ(r.at("number").f, (std::vector<double>{1, 0x1p64, 0x1p63}));
  EXPECT_EQ(r.at("order").i, (Ints{0, 2, 1}));
}

// A power is a product of rounded factors, which may miss the zero that its exact value rounds to; a power of zero does
// not.
TEST(Reference, APowerThatUnderflowsHasABound) {
  Graph g;
  const Tensor x = g.input("x", {2}, DType::F8E5M2);
  g.output("y", pow(x, g.constant(3, DType::F8E5M2)));
  Value v = make_value(DType::F8E5M2, {2});
  v.f = {-0x1p-6, 0};
  const Value y = interpret(g, {{"x", v}}, {}, Rounding::Wide, true).outputs.at("y");
  EXPECT_EQ(y.at(0), 0);
  EXPECT_GT(y.error_at(0), 0x1p-18);
  EXPECT_EQ(y.error_at(1), 0);
}
