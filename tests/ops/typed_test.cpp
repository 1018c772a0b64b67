// The typed face gives the answers and the sentences of the untyped operations.
#include "on_device.h"
#include "typed_rules.h"

using namespace lc;
using namespace typed_rules;

static_assert(
    std::is_same_v<decltype(matmul(ty::Tensor<float, 2, 3>(), ty::Tensor<float, 3, 4>())), ty::Tensor<float, 2, 4>>);
static_assert(std::is_same_v<decltype(matmul(ty::Tensor<float, "b", 2, 3>(), ty::Tensor<float, 3, 4>())),
                             ty::Tensor<float, "b", 2, 4>>);
static_assert(std::is_same_v<decltype(ty::Tensor<float, 3, 1>() + ty::Tensor<float, 4>()), ty::Tensor<float, 3, 4>>);
static_assert(
    std::is_same_v<decltype(ty::Tensor<float, ty::dyn, 4>() + ty::Tensor<float, 3, 4>()), ty::Tensor<float, 3, 4>>);
static_assert(std::is_same_v<decltype(ty::sum<0, -1>(ty::Tensor<float, 2, 3, 4>())), ty::Tensor<float, 3>>);
static_assert(std::is_same_v<decltype(ty::sum(ty::Tensor<float, 2, 3>())), ty::Tensor<float>>);
static_assert(std::is_same_v<decltype(ty::argmax<1>(ty::Tensor<float, 2, 3>())), ty::Tensor<std::int64_t, 2>>);
static_assert(std::is_same_v<decltype(ty::Tensor<float, 2>() < ty::Tensor<float, 2>()), ty::Tensor<bool, 2>>);
static_assert(
    std::is_same_v<decltype(ty::conv2d<2, 1>(ty::Tensor<float, "n", 3, 8, 8>(), ty::Tensor<float, 16, 3, 3, 3>())),
                   ty::Tensor<float, "n", 16, 4, 4>>);
static_assert(std::is_same_v<decltype(ty::concat<1>(ty::Tensor<float, 2, 3>(), ty::Tensor<float, 2, 5>())),
                             ty::Tensor<float, 2, 8>>);
static_assert(
    std::is_same_v<decltype(ty::reshape<"b", 2, 3>(ty::Tensor<float, "b", 6>())), ty::Tensor<float, "b", 2, 3>>);
static_assert(std::is_same_v<decltype(ty::to<double>(ty::Tensor<float, 2>())), ty::Tensor<double, 2>>);
static_assert(std::is_same_v<decltype(ty::Tensor<float, 2>().to<double>()), ty::Tensor<double, 2>>);
static_assert(sizeof(ty::Tensor<float, 1, 2, 3>) == sizeof(Tensor));

// The rule that runs in the compiler and the one that runs when the graph is built give the same message.
TEST(Typed, OneSentenceAtCompileTimeAndAtRunTime) {
  Graph g;
  const Tensor a = g.input("a", {32, 784}), b = g.input("b", {512, 10}), c = g.input("c", {2, 3}),
               d = g.input("d", {2, 4}), x = g.input("x", {4, 4}), w = g.input("w", {3, 8});
  EXPECT_EQ(problem_of([&] { matmul(a, b); }), ty::infer_matmul(shape({32, 784}), shape({512, 10})).error.s);
  EXPECT_EQ(problem_of([&] { concat({c, d}, 0); }), ty::infer_concat(shape({2, 3}), shape({2, 4}), 0).error.s);
  EXPECT_EQ(problem_of([&] { c.reshape({4, 2}); }), ty::infer_reshape(shape({2, 3}), shape({4, 2})).error.s);
  EXPECT_EQ(problem_of([&] { sum(c, {2}); }), ty::bad_axis("sum", 2, shape({2, 3})).error.s);
  EXPECT_EQ(problem_of([&] { softmax(c, -3); }), ty::bad_axis("softmax", -3, shape({2, 3})).error.s);
  EXPECT_EQ(problem_of([&] { c + d; }), ty::infer_broadcast("operator+", shape({2, 3}), shape({2, 4})).error.s);
  EXPECT_EQ(problem_of([&] { linear(x, w); }), ty::infer_linear(shape({4, 4}), shape({3, 8})).error.s);
  EXPECT_EQ(problem_of([&] {
              broadcast_to(c, {4, 2, 5});
            }),
            ty::infer_broadcast_to(shape({2, 3}), shape({4, 2, 5})).error.s);
  const int axes[] = {0, 0};
  EXPECT_EQ(problem_of([&] { c.permute({0, 0}); }), ty::infer_permute(shape({2, 3}), axes, 2).error.s);
  // with dynamic extents, the same message at build time
  const auto p = ty::input<float, ty::dyn, ty::dyn>(g, "p", {32, 784});
  const auto q = ty::input<float, ty::dyn, ty::dyn>(g, "q", {512, 10});
  EXPECT_EQ(problem_of([&] { ty::matmul(p, q); }),
            "matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512");
  EXPECT_EQ(problem_of([&] { static_cast<void>(p.as<"batch", 784>()); }),
            "as: a tensor of [32, 784] is not a [batch, 784]");
  EXPECT_EQ(problem_of([&] { static_cast<void>(p.as<32, 785>()); }), "as: a tensor of [32, 784] is not a [32, 785]");
  EXPECT_EQ(problem_of([&] { static_cast<void>(p.as<32, 784>()); }), "");
}

TEST(Typed, NamedExtentsAreBoundWhenItRuns) {
  Session cx;
  auto x = cx.tensor<"rows", 3>();
  const auto y = ty::sum<0>(x * 2.0).retrieve();
  cx.compile(generic() | test::device({.threads = 1}));
  EXPECT_THROW(cx.execute(), Error);  // the symbol "rows" is not bound
  x.set(std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(cx.bind("rows", 2).execute().data(y), (std::vector<float>{10, 14, 18}));
  EXPECT_THROW(cx.bind("rows", 3).execute(), Error);  // six elements are not three rows
  EXPECT_EQ(problem_of([&] { cx.bind("rows", 5000); }), "bind: rows = 5000 is outside its bounds [1, 4096]");
  EXPECT_EQ(problem_of([&] { cx.bind("row", 2); }), "bind: no extent of an input is named 'row'");
  x.set(std::vector<float>{1, 2, 3});
  EXPECT_EQ(cx.bind("rows", 1).execute().data(y), (std::vector<float>{2, 4, 6}));
}

TEST(Typed, HandlesStayValidThroughEveryCompile) {
  Session cx;
  auto a = cx.tensor<2, 2>().set({{1, 2}, {3, 4}});
  const auto b = (a + a).retrieve("b");
  cx.compile(generic()).execute();
  EXPECT_EQ(cx.str(b), "[[2, 4],\n [6, 8]]");
  const auto c = ty::matmul(a, b).retrieve("c");
  cx.compile(generic() | test::device({.threads = 1})).execute();
  EXPECT_EQ(cx.data(b), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(cx.data(c), (std::vector<float>{14, 20, 30, 44}));
}

// ---- random shapes: the rule of the types is the rule of the operation ----------------------------

TEST_F(Rules, Products) {
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any(), b = i % 2 ? any() : near(a);
    same(ty::infer_matmul(a, b), [&] { return matmul(tensor(a), tensor(b)); });
    same(ty::infer_linear(a, b), [&] { return linear(tensor(a), tensor(b)); });
  }
}
TEST_F(Rules, Broadcasting) {
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any(), b = i % 2 ? any() : near(a);
    same(ty::infer_broadcast("operator+", a, b), [&] { return tensor(a) + tensor(b); });
    same(ty::infer_broadcast("le", a, b), [&] { return tensor(a) <= tensor(b); });
    same(ty::infer_broadcast("maximum", a, b), [&] { return maximum(tensor(a), tensor(b)); });
    same(ty::infer_broadcast_to(a, b), [&] { return broadcast_to(tensor(a), ty::stretch_to(tensor(a), b)); });
  }
}
TEST_F(Rules, Axes) {
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any();
    const int x = pick(-5, 4), y = pick(-5, 4), both[] = {x, y};
    const bool keep = i % 2;
    same(ty::infer_reduce("sum", a, both, 2, keep), [&] { return sum(tensor(a), {x, y}, keep); });
    same(ty::infer_reduce("amin", a, both, 2, keep, true), [&] { return amin(tensor(a), {x, y}, keep); });
    same(ty::infer_reduce("argmax", a, both, 1, keep, true), [&] { return argmax(tensor(a), x, keep); });
    same(ty::infer_along("softmax", a, x), [&] { return softmax(tensor(a), x); });
    same(ty::infer_transpose(a, x, y), [&] { return tensor(a).transpose(x, y); });
    same(ty::infer_unsqueeze(a, x), [&] { return tensor(a).unsqueeze(x); });
    same(ty::infer_squeeze(a, x), [&] { return tensor(a).squeeze(x); });
    same(ty::infer_flatten(a, x, y), [&] { return flatten(tensor(a), x, y); });
    same(ty::infer_pad(a, x, 2, y), [&] { return pad(tensor(a), x, 2, y); });
  }
}
TEST_F(Rules, Movement) {
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any(), b = i % 3 ? near(a) : any();
    int axes[8], n = pick(0, 4);
    for (int k = 0; k < n; ++k) axes[k] = pick(-n, n - 1);
    same(ty::infer_permute(a, axes, n), [&] { return tensor(a).permute({axes, axes + n}); });
    const int axis = pick(-4, 3), begin = pick(-8, 8), end = pick(-8, 8), step = pick(-3, 3);
    same(ty::infer_slice(a, axis, begin, end, step), [&] { return slice(tensor(a), axis, begin, end, step); });
    same(ty::infer_concat(a, b, axis), [&] { return concat({tensor(a), tensor(b)}, axis); });
    same(ty::infer_index_select(a, axis, b), [&] { return index_select(tensor(a), axis, to(tensor(b), DType::I64)); });
    same(ty::infer_embedding(a, b), [&] { return embedding(to(tensor(b), DType::I64), tensor(a)); });
    same(ty::infer_triangle("tril", a), [&] { return tril(tensor(a)); });
  }
}
TEST_F(Rules, Reshape) {
  for (int i = 0; i < 6000 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any();
    ty::Shape b = a;
    for (int k = 0; k < 4 && b.rank > 1; ++k) std::swap(b.d[pick(0, b.rank - 1)], b.d[pick(0, b.rank - 1)]);
    if (i % 3 == 0) b = near(b);
    const ty::Inferred rule = ty::infer_reshape(a, b);
    same(rule, [&] { return tensor(a).reshape(ty::reshape_to(tensor(a), rule.out)); });
  }
}
TEST_F(Rules, Convolution) {
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    const int spatial = pick(1, 3);
    ty::Shape x, w;
    x.push(2), w.push(pick(1, 4)), w.push(pick(1, 2)), x.push(pick(1, 3));
    for (int k = 0; k < spatial; ++k) x.push(pick(1, 9)), w.push(pick(1, 4));
    const auto each = [this](int low, int high) { return ty::Each{pick(low, high), pick(low, high), pick(low, high)}; };
    const ty::Window o{each(1, 3), each(0, 2), each(1, 2), pick(1, 2)};
    const auto all = [&](const ty::Each& e) { return ty::numbers(e, spatial); };
    same(ty::infer_conv(x, w, spatial, o), [&] {
      return conv(
          tensor(x), tensor(w),
          {.stride = all(o.stride), .padding = all(o.padding), .dilation = all(o.dilation), .groups = o.groups});
    });
    const ty::Each kernel = each(1, 8);
    const ty::Window p{o.stride, o.padding, 1, 1};
    same(ty::infer_pool("max_pool", x, spatial, kernel, p),
         [&] { return max_pool(tensor(x), all(kernel), all(o.stride), all(o.padding)); });
    same(ty::infer_pool("avg_pool", x, spatial, kernel, p),
         [&] { return avg_pool(tensor(x), all(kernel), all(o.stride), all(o.padding)); });
    const ty::Shape a = any(2, 4);
    same(ty::infer_group_norm(a, o.stride[0]), [&] { return group_norm(tensor(a), o.stride[0]); });
  }
}

// If some extents are replaced by dyn, a rule accepts everything that the full rule accepts, and its inferred result
// agrees.
TEST_F(Rules, KnowingLessIsNeverWrong) {
  const auto less = [&](ty::Shape s) {
    for (int i = 0; i < s.rank; ++i)
      if (pick(0, 2) == 0) s.d[i] = ty::dyn;
    return s;
  };
  const auto compare = [&](const ty::Inferred& full, const ty::Inferred& part) {
    if (!full.ok()) {
      ++failed_;
      return;
    }
    ++passed_;
    ASSERT_TRUE(part.ok()) << part.error.s;
    ASSERT_EQ(part.out.rank, full.out.rank);
    for (int i = 0; i < full.out.rank; ++i) {
      ASSERT_TRUE(part.out.d[i] == ty::dyn || part.out.d[i] == full.out.d[i]) << i;
    }
  };
  for (int i = 0; i < 4000 && !HasFatalFailure(); ++i) {
    const ty::Shape a = any(), b = near(a), x = less(a), y = less(b);
    const int axis = pick(-4, 3), other = pick(-4, 3), axes[] = {axis, other};
    compare(ty::infer_broadcast("operator+", a, b), ty::infer_broadcast("operator+", x, y));
    compare(ty::infer_matmul(a, b), ty::infer_matmul(x, y));
    compare(ty::infer_linear(a, b), ty::infer_linear(x, y));
    compare(ty::infer_concat(a, b, axis), ty::infer_concat(x, y, axis));
    compare(ty::infer_reduce("amax", a, axes, 2, i % 2, true), ty::infer_reduce("amax", x, axes, 2, i % 2, true));
    compare(ty::infer_permute(a, axes, 2), ty::infer_permute(x, axes, 2));
    compare(ty::infer_squeeze(a, axis), ty::infer_squeeze(x, axis));
    compare(ty::infer_flatten(a, axis, other), ty::infer_flatten(x, axis, other));
    compare(ty::infer_slice(a, axis, -2, other, 1), ty::infer_slice(x, axis, -2, other, 1));
    compare(ty::infer_pad(a, axis, 1, 2), ty::infer_pad(x, axis, 1, 2));
    compare(ty::infer_broadcast_to(a, b), ty::infer_broadcast_to(x, b));
    compare(ty::infer_reshape(a, b), ty::infer_reshape(x, b));
    compare(ty::infer_group_norm(a, 2), ty::infer_group_norm(x, 2));
    compare(ty::infer_attention(a, b, b), ty::infer_attention(x, y, b));
    compare(ty::infer_scores(a, a, b), ty::infer_scores(x, a, y));
    ty::Shape image, filter;
    for (int k = 0; k < 4; ++k) image.push(pick(1, 6)), filter.push(pick(1, 3));
    compare(ty::infer_conv(image, filter, 2, {1, 1, 1, 1}), ty::infer_conv(less(image), less(filter), 2, {1, 1, 1, 1}));
    compare(ty::infer_pool("max_pool", image, 2, 3, {2, 0, 1, 1}),
            ty::infer_pool("max_pool", less(image), 2, 3, {2, 0, 1, 1}));
  }
}

// ---- element types: what the type says is what the node has -----------------------------------------

template <class E>
class Elements : public ::testing::Test {};
using EveryElement = ::testing::Types<float, double, f16, bf16, std::int32_t, std::int64_t, std::uint8_t, bool>;
TYPED_TEST_SUITE(Elements, EveryElement);

TYPED_TEST(Elements, OfResults) {
  using E = TypeParam;
  Graph g;
  const auto a = ty::input<E, "batch", 3>(g, "a"), b = ty::input<E, "batch", 3>(g, "b");
  KEPT(a + b), KEPT(a * b), KEPT(a / b), KEPT(a < b), KEPT(a >= b);
  if constexpr (!std::is_same_v<E, bool>) KEPT(a - b), KEPT(-a), KEPT(a % b);
  KEPT(a + 1), KEPT(a - 1), KEPT(2 * a), KEPT(a / 2), KEPT(1 / a), KEPT(a + 0.5), KEPT(1.0 - a), KEPT(a * 2.0f),
      KEPT(a < 1), KEPT(a >= 0.5);
  KEPT(ty::abs(a)), KEPT(ty::sign(a)), KEPT(ty::square(a)), KEPT(ty::floor(a)), KEPT(ty::ceil(a)), KEPT(ty::round(a)),
      KEPT(ty::trunc(a)), KEPT(ty::relu(a));
  KEPT(ty::exp(a)), KEPT(ty::exp2(a)), KEPT(ty::expm1(a)), KEPT(ty::log(a)), KEPT(ty::log2(a)), KEPT(ty::log1p(a)),
      KEPT(ty::sqrt(a)), KEPT(ty::rsqrt(a)), KEPT(ty::reciprocal(a));
  KEPT(ty::sin(a)), KEPT(ty::cos(a)), KEPT(ty::tan(a)), KEPT(ty::tanh(a)), KEPT(ty::erf(a)), KEPT(ty::sigmoid(a)),
      KEPT(ty::logsigmoid(a)), KEPT(ty::selu(a)), KEPT(ty::elu(a));
  KEPT(ty::gelu(a)), KEPT(ty::gelu_tanh(a)), KEPT(ty::silu(a)), KEPT(ty::mish(a)), KEPT(ty::softplus(a)),
      KEPT(ty::softsign(a)), KEPT(ty::hardsigmoid(a)), KEPT(ty::hardswish(a));
  KEPT(ty::isnan(a)), KEPT(ty::isinf(a)), KEPT(ty::isfinite(a)), KEPT(ty::logical_not(a)), KEPT(ty::clamp(a, 0, 1)),
      KEPT(ty::clamp(a, 0.5, 1));
  if constexpr (ty::kFloating<E>) KEPT(ty::frac(a)), KEPT(ty::leaky_relu(a)), KEPT(ty::pow(a, 3.0));
  KEPT(ty::maximum(a, b)), KEPT(ty::minimum(a, b)), KEPT(ty::pow(a, b)), KEPT(ty::fmod(a, b)),
      KEPT(ty::floor_divide(a, b));
  KEPT(ty::eq(a, b)), KEPT(ty::ne(a, b)), KEPT(ty::logical_and(a, b)), KEPT(ty::logical_or(a, b)),
      KEPT(ty::logical_xor(a, b));
  KEPT(ty::where(a < b, a, b)), KEPT(ty::masked_fill(a, a < b, 1)), KEPT(ty::template to<bf16>(a)),
      KEPT(a.template to<bf16>()), KEPT(ty::template to<std::uint8_t>(a));
  KEPT(ty::sum<0>(a)), KEPT(ty::mean<-1>(a)), KEPT(ty::amax(a)), KEPT(ty::amin<0, 1>(a)), KEPT(ty::logsumexp<1>(a)),
      KEPT(ty::any<0>(a)), KEPT(ty::all(a)), KEPT(ty::var<1>(a)), KEPT(ty::stddev(a));
  KEPT(ty::sum<0>(a, ty::keepdim)), KEPT(ty::mean<-1>(a, ty::keepdim)), KEPT(ty::amax(a, ty::keepdim)),
      KEPT(ty::var<1>(a, ty::keepdim)), KEPT(ty::any<0>(a, ty::keepdim));
  KEPT(ty::argmax<0>(a)), KEPT(ty::argmin<1>(a)), KEPT(ty::softmax<1>(a)), KEPT(ty::log_softmax<-1>(a)),
      KEPT(ty::cumsum<0>(a)), KEPT(ty::cumprod<1>(a)), KEPT(ty::cummax<1>(a).values), KEPT(ty::cummin<0>(a).indices),
      KEPT(ty::argsort<1>(a));
  KEPT(ty::asin(a)), KEPT(ty::atan(a)), KEPT(ty::cosh(a)), KEPT(ty::log10(a)), KEPT(ty::sgn(a)), KEPT(ty::erfc(a)),
      KEPT(ty::isposinf(a)), KEPT(ty::zeros_like(a)), KEPT(ty::signbit(a));
  KEPT(ty::add(a, b)), KEPT(ty::mul(a, b)), KEPT(ty::div(a, b)), KEPT(ty::lt(a, b)), KEPT(ty::ge(a, 1)),
      KEPT(ty::ne(a, 0.0)), KEPT(ty::hypot(a, b)), KEPT(ty::add(a, 2)), KEPT(ty::mul(2.0, a)), KEPT(1 / a), KEPT(a % 2),
      KEPT(2.0 < a), KEPT(ty::where(a < b, a, 2)), KEPT(ty::where(a < b, 1.5, b)), KEPT(ty::lerp(a, b, 0.25));
  if constexpr (!std::is_same_v<E, bool>)
    KEPT(ty::sub(a, b)), KEPT(ty::neg(a)), KEPT(ty::sub(1.0, a)), KEPT(ty::clamp_min(a, 1)),
        KEPT(ty::clamp_max(a, 0.5));
  KEPT(ty::max(a)), KEPT(ty::min(a)), KEPT(ty::max(a, b)), KEPT(ty::max<1>(a).values), KEPT(ty::min<0>(a).indices),
      KEPT(ty::count_nonzero<0>(a)), KEPT(ty::norm<1>(a)), KEPT(ty::prod<1>(a)), KEPT(ty::sort<1>(a).values),
      KEPT(ty::topk<2>(a).indices), KEPT(ty::softmin<0>(a)), KEPT(lc::typed::std<1>(a));
  KEPT(a[0]), KEPT(a[-1]), KEPT(ty::select<1>(a, 2)), KEPT(ty::narrow<1, 1, 2>(a)), KEPT(ty::narrow<1, -2, 2>(a)),
      KEPT(ty::t(a)), KEPT(ty::diff(ty::t(ty::template reshape<3, "batch">(a)))), KEPT(ty::swapaxes<0, 1>(a)),
      KEPT(ty::cat<1>(a, b)), KEPT(ty::cat<-1>(a, b));
  KEPT(ty::layer_norm(a)), KEPT(ty::rms_norm(a)), KEPT(ty::template reshape<3, "batch">(a)),
      KEPT(ty::template reshape<3, ty::dyn, "batch">(a)), KEPT(ty::template broadcast_to<2, ty::dyn, 3>(a));
  KEPT(ty::permute<1, 0>(a)), KEPT(ty::transpose<0, 1>(a)), KEPT(ty::unsqueeze<-1>(a)),
      KEPT(ty::squeeze<0>(ty::unsqueeze<0>(a)));
  KEPT(ty::slice<1, 0, -1>(a)), KEPT(ty::slice<1, 2, -4, -1>(a)), KEPT(ty::pad<1, 2, 1>(a)),
      KEPT(ty::pad<1, 2, 1>(a, 1.0)), KEPT(ty::flip<1>(a)), KEPT(ty::roll<1>(a, 1)), KEPT(ty::tril(a)),
      KEPT(ty::triu(a, 1));
  KEPT(ty::concat<1>(a, b, a)), KEPT(ty::stack<0>(a, b)), KEPT(ty::matmul(a, ty::transpose<0, 1>(b))),
      KEPT(a.matmul(ty::transpose<0, 1>(b))), KEPT(ty::linear(a, b));
  const auto i = ty::input<std::int32_t, 2, 5>(g, "i");
  const auto w = ty::input<E, 7, 3>(g, "w");
  KEPT(ty::embedding(i, w)), KEPT(ty::index_select<0>(w, ty::sum<0>(i))), KEPT(ty::one_hot<9>(i));
  if constexpr (ty::kFloating<E>) {
    const auto x = ty::input<E, "n", 4, 8, 8>(g, "x");
    const auto f = ty::input<E, 6, 2, 3, 3>(g, "f");
    KEPT(ty::conv2d<2, 1, 1, 2>(x, f)), KEPT(ty::max_pool2d<2>(x)), KEPT(ty::avg_pool2d<3, 2, 1>(x)),
        KEPT(ty::group_norm<2>(x)), KEPT(ty::flatten<1>(x));
    KEPT(ty::scaled_dot_product_attention(x, x, x)),
        KEPT(ty::scaled_dot_product_attention(x, x, x, ty::input<bool, 8, 8>(g, "m")));
    const auto bias = ty::input<E, 7>(g, "bias");
    const auto six = ty::input<E, 6>(g, "six");
    const auto four = ty::input<E, 4>(g, "four");
    const auto last = ty::input<E, 8>(g, "last");
    KEPT(ty::conv2d<1, 0, 1, 2>(x, f, six)), KEPT(ty::conv2d<ty::Each{2, 1}, ty::Each{1, 0}, 1, 2>(x, f)),
        KEPT(ty::max_pool2d<ty::Each{2, 3}>(x)), KEPT(ty::batch_norm(x, four, four, four, four)),
        KEPT(ty::layer_norm(x, last, last)), KEPT(ty::rms_norm(x, last)), KEPT(ty::group_norm<2>(x, four, four));
    KEPT(ty::scaled_dot_product_attention(x, x, x, ty::input<E, 8, 8>(g, "added"))),
        KEPT(ty::scaled_dot_product_attention(x, x, x, AttentionOptions{.is_causal = true}));
    KEPT(ty::linear(a, w, bias));
  }
}

TEST(Typed, UntypedOperationsTakeTypedTensors) {
  Graph g;
  const auto a = ty::input<float, 2, 3>(g, "a");
  const Tensor u = g.input("u", {3});
  EXPECT_EQ(str(relu6(a).shape()), "[2, 3]");
  EXPECT_EQ(str((a + u).shape()), "[2, 3]");
  EXPECT_EQ(str((u - a).shape()), "[2, 3]");
  EXPECT_EQ(str(concat({a, a}, 0).shape()), "[4, 3]");
  const auto known = ty::Tensor<float, 2, 3>::from(a * u);
  static_assert(std::is_same_v<decltype(known + a), ty::Tensor<float, 2, 3>>);
  EXPECT_EQ(problem_of([&] { static_cast<void>(ty::Tensor<float, 3, 2>::from(a * u)); }),
            "as: a tensor of [2, 3] is not a [3, 2]");
  EXPECT_EQ(problem_of([&] { static_cast<void>(ty::Tensor<double, 2, 3>::from(a * u)); }),
            "as: a tensor of f32 is not one of f64");
}

TEST(Typed, ErrorsCarryTheUsersLine) {
  Graph g;
  const auto a = ty::input<float, ty::dyn, 3>(g, "a", {5}), b = ty::input<float, ty::dyn, 3>(g, "b", {7});
  const auto line_of = [](const auto& f) {
    try {
      f();
    } catch (const Error& e) {
      return std::string_view(e.where().file).ends_with("typed_test.cpp") ? static_cast<int>(e.where().line) : -1;
    }
    return 0;
  };
  const int here = __LINE__;
  EXPECT_EQ(line_of([&] { a + b; }), here + 1);
  EXPECT_EQ(line_of([&] { static_cast<void>(a < b); }), here + 2);
  EXPECT_EQ(line_of([&] { ty::maximum(a, b); }), here + 3);
  EXPECT_EQ(line_of([&] { ty::concat<1>(a, b); }), here + 4);
  EXPECT_EQ(line_of([&] { concat({a, b}, 1); }), here + 5);
  EXPECT_EQ(line_of([&] { stack({a, b}, 1); }), here + 6);
  EXPECT_EQ(line_of([&] { einsum("ij,ij->i", {a, b}); }), here + 7);
  EXPECT_EQ(line_of([&] { a.matmul(ty::permute<1, 0>(b) * 2); }), 0);
  EXPECT_EQ(line_of([&] { ty::permute<1, 0>(a).matmul(b); }), here + 9);
}

TEST(Typed, NamesHaveOneRange) {
  ty::bound("width_of_a_test", 2, 9);
  Graph g;
  const auto x = ty::input<float, "width_of_a_test">(g, "x");
  EXPECT_EQ(x.extent(0).bounds().hi, 9);
  ty::bound("width_of_a_test", 2, 9);  // setting the same bounds again is allowed
  EXPECT_THROW(ty::bound("width_of_a_test", 2, 10), Error);
  const auto y = ty::input<float, ty::dyn>(g, "y", {x.extent(0)});  // a dyn extent may be a symbol
  EXPECT_EQ(str((x + y).shape()), "[width_of_a_test]");
  EXPECT_EQ(str(y.as<"width_of_a_test">().shape()), "[width_of_a_test]");
  EXPECT_THROW((ty::input<float, ty::dyn>(g, "z")), Error);
  EXPECT_THROW((ty::input<float, 3>(g, "z", {3})), Error);
}

// Two graphs of a program may use a name with different bounds.
TEST(Typed, AGraphHasItsOwnRanges) {
  const auto highest = [](Graph& g, const char* input) {
    return ty::input<float, "height_of_test", 2>(g, input).extent(0).bounds().hi;
  };
  Graph small, large, other, late;
  ty::bound(small, "height_of_test", 1, 8);
  ty::bound(large, "height_of_test", 1, 100000);
  EXPECT_EQ(highest(small, "x"), 8);
  EXPECT_EQ(highest(large, "x"), 100000);
  EXPECT_EQ(highest(small, "y"), 8);
  EXPECT_EQ(highest(other, "x"), 4096);
  ty::bound(small, "height_of_test", 1, 8);  // setting the same bounds again is allowed
  EXPECT_EQ(
      problem_of([&] { ty::bound(small, "height_of_test", 1, 9); }),
      "bound: 'height_of_test' is in use in this graph from 1 to 8; bound it before the first tensor that has it, "
      "once");
  EXPECT_THROW(ty::bound(other, "height_of_test", 1, 8), Error);
  EXPECT_THROW(ty::bound(late, "height_of_test", 8, 8), Error);
  EXPECT_THROW(ty::bound("height_of_test", 1, 8), Error);  // other graphs use it with bounds from 1 to 4096

  // a symbol of an untyped graph, used only within an extent, is the same symbol
  const lc::Dim rows = lc::Dim::symbol("height_of_test", 1, 16);
  const lc::Tensor untyped = late.input("past", {rows + 1, 2});
  const auto x = ty::input<float, "height_of_test", 2>(late, "x");
  EXPECT_EQ(x.extent(0), rows);
  EXPECT_EQ(lc::Dim(untyped.extent(0)) - x.extent(0), lc::Dim(1));

  // bound() adds nothing to the results, and a run may bind every size that the graph allows
  late.output("sum", lc::sum(x, {0, 1}));
  const Program p = compile(late, generic());
  EXPECT_EQ(p.inputs(), (std::vector<std::string>{"x"}));
  Context c(p);
  EXPECT_THROW(c.bind("height_of_test", 17), Error);
  c.bind("height_of_test", 2).set("x", std::vector<float>{1, 2, 3, 4}).run();
  EXPECT_EQ(c.scalar("sum"), 10);
}

TEST(Session, ResultsInTheirOwnType) {
  Session cx;
  auto a = cx.tensor<double, 2, 2>().set({{1, 0.1}, {3, 4}});
  auto i = cx.tensor<std::int64_t, 2>();
  i.set({(std::int64_t{1} << 53) + 1, -5});
  const auto y = (a * 1.0).retrieve();
  const auto z = (i + 0).retrieve();
  const auto m = (a < 2.0).retrieve();
  const auto s = ty::argmax<1>(a).retrieve();
  const auto total = ty::sum(a).retrieve();
  cx.compile(generic()).execute();
  EXPECT_EQ(cx.data(y), (std::vector<double>{1, 0.1, 3, 4}));
  EXPECT_EQ(cx.data(z), (std::vector<std::int64_t>{(std::int64_t{1} << 53) + 1, -5}));
  EXPECT_EQ(cx.data(s), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(cx.str(m), "[[ True,  True],\n [False, False]]");
  EXPECT_EQ(cx.str(y), "[[  1, 0.1],\n [  3,   4]]");
  EXPECT_EQ(cx.str(total), "8.1");
  EXPECT_THROW(cx.data(a + a), Error);  // not retrieved
  EXPECT_THROW(cx.str(ty::Tensor<float, 2>()), Error);
}

TEST(Session, Mistakes) {
  Session cx;
  auto a = cx.tensor<2, 2>();
  const auto b = (a + a).retrieve();
  EXPECT_THROW(cx.execute(), Error);  // not compiled
  EXPECT_THROW(cx.data(b), Error);
  EXPECT_EQ(problem_of([&] { a.set(std::vector<float>(3)); }), "set: 3 elements for a tensor of [2, 2]");
  EXPECT_EQ(problem_of([&] { a.set(std::vector<float>(5)); }), "set: 5 elements for a tensor of [2, 2]");
  cx.compile(generic());
  EXPECT_THROW(cx.execute(), Error);  // no value yet
  a.set({{1, 2}, {3, 4}});
  cx.execute();
  const auto late = (b * 2).retrieve();
  EXPECT_THROW(cx.data(late), Error);  // retrieved after compiling
  EXPECT_EQ(cx.compile(generic()).execute().data(late), (std::vector<float>{4, 8, 12, 16}));
}

TEST(Session, EmptyTensorsAndHighRanksPrint) {
  Session cx;
  auto none = cx.tensor<2, 0>();
  none.set(std::vector<float>{});
  auto cube = cx.tensor<2, 1, 2>().set({1, 2, 3, 40});
  const auto x = (none + none).retrieve();
  const auto y = (cube + 0).retrieve();
  cx.compile(generic()).execute();
  EXPECT_EQ(cx.str(x), "[[],\n []]");
  EXPECT_EQ(cx.str(y), "[[[ 1,  2]],\n\n [[ 3, 40]]]");
}
