// resize() answers as ONNX's reference implementation in every mode (tests/goldens/resize.txt), as Pillow where its
// filter is widened, and as documented for integers, symbolic axes, derivatives and mistakes.
#include "lightcone/ops/vision/resize.h"

#include <sstream>

#include "error_of.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/ops/functional/functional.h"
#include "torch_cases.h"

using namespace lc;

namespace {

// The options of a golden case: "name=value ..." with the short names of tools/make_resize_goldens.py.
struct NamedOptions {
  std::map<std::string, std::string> text;
  explicit NamedOptions(const std::string& line) {
    std::istringstream words(line);
    for (std::string w; words >> w;) text[w.substr(0, w.find('='))] = w.substr(w.find('=') + 1);
  }
  std::vector<double> numbers(const std::string& key) const {
    std::vector<double> all;
    const auto it = text.find(key);
    if (it == text.end()) return all;
    std::istringstream parts(it->second);
    for (std::string p; std::getline(parts, p, ',');) all.push_back(std::stod(p));
    return all;
  }
  double number(const std::string& key, double otherwise) const {
    return text.contains(key) ? numbers(key)[0] : otherwise;
  }
  std::string_view word(const std::string& key, std::string_view otherwise) const {
    return text.contains(key) ? std::string_view(text.at(key)) : otherwise;
  }
  ResizeOptions options() const {
    ResizeOptions o{.scales = numbers("scales"),
                    .mode = word("mode", "nearest"),
                    .coordinate_transformation_mode = word("ctm", "half_pixel"),
                    .nearest_mode = word("nearest_mode", "round_prefer_floor"),
                    .cubic_coeff_a = number("a", -0.75),
                    .antialias = number("antialias", 0) != 0,
                    .exclude_outside = number("exclude_outside", 0) != 0,
                    .keep_aspect_ratio_policy = word("policy", "stretch"),
                    .roi = numbers("roi"),
                    .extrapolation_value = number("extrapolation_value", 0)};
    for (const double v : numbers("sizes")) o.sizes.push_back(static_cast<std::int64_t>(v));
    for (const double v : numbers("axes")) o.axes.push_back(static_cast<int>(v));
    return o;
  }
};

Value numbered(DType type, std::vector<std::int64_t> shape, const std::vector<double>& v) {
  Value r = make_value(type, std::move(shape));
  for (std::size_t k = 0; k < v.size(); ++k)
    if (is_float(type)) r.f[k] = v[k];
    else r.i[k] = static_cast<std::int64_t>(v[k]);
  return r;
}
// Resizes values of one axis or image by a compiled program.
Value resized(const Value& v, const ResizeOptions& o) {
  Graph g;
  const Tensor x = g.input("x", Shape(v.shape.begin(), v.shape.end()), v.dtype);
  g.output("y", resize(x, o));
  return run_values(transform(g, generic() | test::device({.threads = 2})).graph, {{"x", v}}, {}).outputs.at("y");
}

TEST(Resize, AnswersAsOnnxDoes) {
  const std::vector<TorchCase> cases = torch_cases("resize.txt");
  ASSERT_GT(cases.size(), 20u);
  TorchBuilders builders;
  for (const TorchCase& c : cases)
    builders[c.name] = [o = NamedOptions(c.name)](Graph&, const std::vector<Tensor>& t) {
      return std::vector{resize(t[0], o.options())};
    };
  hold_against_torch("resize.txt", builders, {.f64 = 1e-12, .of_largest = 1}, 120);
}

// Pillow 13: Image.fromarray(row).resize((3, 1), BILINEAR) and BICUBIC of a row of bytes, which rounds as bytes do
// here.
TEST(Resize, WidensFiltersAsPillowDoes) {
  const Value row = numbered(DType::U8, {1, 8}, {0, 255, 10, 200, 90, 30, 255, 128});
  ResizeOptions o{.sizes = {1, 3}, .mode = "linear", .antialias = true, .exclude_outside = true};
  EXPECT_EQ(resized(row, o).i, (std::vector<std::int64_t>{119, 109, 152}));
  o.mode = "cubic", o.cubic_coeff_a = -0.5;
  EXPECT_EQ(resized(row, o).i, (std::vector<std::int64_t>{114, 109, 152}));
}

// Integers are rounded to the nearest and clamped: a cubic filter leaves the range of bytes.
TEST(Resize, ClampsIntegers) {
  const Value row = numbered(DType::U8, {4}, {0, 0, 255, 255});
  EXPECT_EQ(resized(row, {.scales = {2}, .mode = "cubic"}).i,
            (std::vector<std::int64_t>{0, 0, 0, 58, 197, 255, 255, 255}));
  EXPECT_EQ(resized(numbered(DType::Bool, {2}, {1, 0}), {.scales = {2}}).i, (std::vector<std::int64_t>{1, 1, 0, 0}));
}

// Modes without a reference: by the text of the operator.
TEST(Resize, FollowsTheTextWhereTheReferenceDoesNot) {
  const Value row = numbered(DType::F64, {4}, {1, 2, 4, 8});
  EXPECT_EQ(resized(row, {.scales = {0.25}, .mode = "cubic", .coordinate_transformation_mode = "pytorch_half_pixel"}).f,
            (std::vector<double>{1}));
  EXPECT_EQ(
      resized(row, {.sizes = {6}, .coordinate_transformation_mode = "tf_half_pixel_for_nn", .nearest_mode = "floor"}).f,
      (std::vector<double>{1, 2, 2, 4, 8, 8}));
  // 10 elements by the f32 next to 0.7 are 7, as ONNX's shape inference says, not floor(6.99999988).
  Value ten = make_value(DType::F64, {10});
  EXPECT_EQ(resized(ten, {.scales = {static_cast<double>(0.7f)}}).size(), 7u);
}

// Batch and channels are symbols, and the derivative is the transpose: each weight of one row sums to its use.
TEST(Resize, SymbolicAxesAndDerivatives) {
  Graph g;
  const Dim b = Dim::symbol("b", 1, 8), c = Dim::symbol("c", 1, 8);
  const Tensor x = g.input("x", {b, c, 4, 4});
  const Tensor y = resize(x, {.sizes = {b, c, 2, 8}, .mode = "linear", .antialias = true, .exclude_outside = true});
  EXPECT_EQ(str(y.shape()), "[b, c, 2, 8]");
  EXPECT_EQ(str(resize(x, {.scales = {1, 1, 2, 2}, .mode = "cubic"}).shape()), "[b, c, 8, 8]");
  const Tensor w = g.input("w", {8}, DType::F64);
  g.output("d", gradient(sum(resize(w, {.scales = {0.5}, .mode = "linear"})), w));
  std::map<std::string, Value> in{{"w", make_value(DType::F64, {8})}};
  const Value d = interpret(g, {{"w", in.at("w")}, {"x", make_value(DType::F32, {1, 1, 4, 4})}}, {{"b", 1}, {"c", 1}})
                      .outputs.at("d");
  EXPECT_EQ(d.f, std::vector<double>(8, 0.5));
}

// interpolate(antialias=True) is Pillow's filter; torch 2.15 gives these numbers.
TEST(Resize, InterpolateWidensFilters) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 1, 8}, DType::F64);
  g.output("y", interpolate(x, {.size = {1, 3}, .mode = "bilinear", .antialias = true}));
  const Value v = numbered(DType::F64, {1, 1, 1, 8}, {0, 255, 10, 200, 90, 30, 255, 128});
  const Value y = interpret(g, {{"x", v}}).outputs.at("y");
  const std::vector<double> want = {118.8157894736842, 108.57142857142857, 151.92105263157893};
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(y.f[k], want[k], 1e-10);
}

TEST(Resize, Mistakes) {
  Graph g;
  const Tensor x = g.input("x", {1, 1, 4, 4}), s = g.input("s", {Dim::symbol("n", 1, 9)});
  const auto expect = [](const std::function<void()>& f, const std::string& sentence) {
    expect_error(f, sentence, "resize_test.cpp");
  };
  expect([&] { resize(x, {}); }, "resize: it needs scales or sizes, one of them");
  expect([&] { resize(x, {.scales = {2, 2}}); }, "resize: 2 scales for 4 axes of [1, 1, 4, 4]");
  expect([&] { resize(x, {.sizes = {2, 2}, .axes = {2, 2}}); }, "resize: axis 2 is named twice");
  expect([&] { resize(x, {.sizes = {0}, .axes = {3}}); }, "resize: axis 3 of [1, 1, 4, 4] to a size of 0");
  expect([&] { resize(x, {.scales = {-1}, .axes = {3}}); }, "resize: a scale of -1 for axis 3 of [1, 1, 4, 4]");
  expect([&] { resize(x, {.scales = {2}, .axes = {3}, .mode = "bilinear"}); },
         "resize: there is no mode \"bilinear\"; there are \"nearest\", \"linear\", \"cubic\"");
  expect([&] { resize(x, {.scales = {2}, .axes = {3}, .antialias = true}); },
         "resize: mode \"nearest\" has no filter to widen (antialias)");
  expect([&] { resize(x, {.sizes = {2}, .axes = {3}, .coordinate_transformation_mode = "tf_crop_and_resize"}); },
         "resize: 0 ends in roi for 1 axes of [1, 1, 4, 4]");
  EXPECT_NE(error_of([&] { resize(s, {.scales = {2}}); }).find("resize"), std::string::npos);
}

}  // namespace
