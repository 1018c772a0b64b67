// Regions of images, convolutions whose taps move, and cubic sampling give ONNX Runtime's answers
// (tests/goldens/regions.txt).
#include "lightcone/ops/vision/regions.h"

#include <sstream>

#include "error_of.h"
#include "lightcone/ops/functional/functional.h"
#include "torch_cases.h"

using namespace lc;

namespace {

Tensor built(const std::string& name, const std::vector<Tensor>& t) {
  std::istringstream words(name);
  std::string what, first;
  words >> what >> first;
  if (what == "sample") {
    int align = 0;
    words >> align;
    return grid_sample(t[0], t[1], "bicubic", first, align != 0);
  }
  if (what == "pool") {  // boxes begin with their image
    const Tensor image = t[1].select(1, 0).to(DType::I64);
    return roi_pool(t[0], t[1].slice(1, 1, 5), image, 3, 2, std::stod(first));
  }
  if (what == "align") {
    RoiAlignOptions o{.height = 3, .width = 2, .spatial_scale = 0.5, .largest = first == "max"};
    int aligned = 0;
    words >> o.sampling_ratio >> aligned;
    o.aligned = aligned != 0;
    return roi_align(t[0], t[1], t[2], o);
  }
  int offset_groups = 0, stride = 0, dilation = 0, padding = 0, has_mask = 0;
  words >> offset_groups >> stride >> dilation >> padding >> has_mask;
  return deform_conv(t[0], t[1], t[2], t[3], has_mask ? OptionalOperand(t[4]) : OptionalOperand(),
                     {.stride = stride,
                      .dilation = dilation,
                      .padding = padding,
                      .groups = std::stoi(first),
                      .offset_groups = offset_groups});
}

TEST(Regions, AnswerAsOnnxRuntimeDoes) {
  Graph g;
  std::map<std::string, Value> inputs, want;
  for (const TorchCase& c : torch_cases("regions.txt")) {
    std::vector<Tensor> in;
    for (const Value& v : c.in) {
      const std::string name = str_cat("in ", inputs.size());
      in.push_back(g.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      inputs[name] = v;
    }
    const std::string name = str_cat(want.size(), " ", c.name);
    g.output(name, built(c.name, in)), want[name] = c.out[0];
  }
  ASSERT_GT(want.size(), 20u);
  const auto reference = interpret(g, inputs, {}, Rounding::Storage).outputs;
  const auto compiled = run_values(transform(g, generic() | test::device({.threads = 2})).graph, inputs, {}).outputs;
  for (const auto& [name, v] : want)
    for (const auto* have : {&reference, &compiled}) {
      const Value& got = have->at(name);
      ASSERT_EQ(got.shape, v.shape) << name;
      for (std::size_t k = 0; k < v.size(); ++k)
        EXPECT_NEAR(got.f[k], v.f[k], 2e-5 * (1 + std::abs(v.f[k]))) << name << ' ' << k;
    }
}

// A box as large as an element and one of two elements have these means by hand; the image of each is data.
TEST(Regions, BoxesOfSeveralImages) {
  Graph g;
  const Tensor x = g.input("x", {2, 1, 2, 2}), boxes = g.input("boxes", {3, 4}), at = g.input("at", {3}, DType::I64);
  g.output("y", roi_align(x, boxes, at, {.aligned = true}));
  g.output("pooled", roi_pool(x, boxes, at, 1, 1));
  std::map<std::string, Value> in{{"x", make_value(DType::F32, {2, 1, 2, 2})},
                                  {"boxes", make_value(DType::F32, {3, 4})},
                                  {"at", make_value(DType::I64, {3})}};
  in["x"].f = {1, 2, 3, 4, 10, 20, 30, 40};
  in["boxes"].f = {0, 0, 1, 1, 0, 0, 2, 2, 1, 0, 2, 1};
  in["at"].i = {0, 1, 1};
  const auto r = interpret(g, in).outputs;
  EXPECT_EQ(r.at("y").f, (std::vector<double>{1, 25, 20}));
  EXPECT_EQ(r.at("pooled").f, (std::vector<double>{4, 40, 40}));
}

// Without offsets a deformable convolution is a convolution, in one, two and three dimensions.
TEST(Regions, DeformableConvolutionWithoutOffsets) {
  for (int axes = 1; axes <= 3; ++axes) {
    Graph g;
    Shape image{2, 4}, filter{6, 2}, moved{2, 1};
    for (int k = 0; k < axes; ++k) image.push_back(5 + k), filter.push_back(2);
    const Tensor x = g.input("x", image), w = g.input("w", filter);
    const Tensor want = conv(x, w, {.stride = 2, .padding = 1, .groups = 2});
    moved[1] = axes << axes;
    for (int k = 0; k < axes; ++k) moved.push_back(want.extent(2 + k));
    const Tensor got = deform_conv(x, w, full(g, moved, 0), {}, {}, {.stride = 2, .padding = 1, .groups = 2});
    ASSERT_EQ(got.shape(), want.shape());
    g.output("difference", sum(abs(got - want)));
    g.output("size", sum(abs(want)));
    std::map<std::string, Value> in;
    for (const auto& [name, t] : {std::pair{"x", x}, {"w", w}}) {
      std::vector<std::int64_t> shape;
      for (const Dim& d : t.shape()) shape.push_back(*d.constant());
      Value v = make_value(DType::F32, shape);
      for (std::size_t k = 0; k < v.size(); ++k) v.f[k] = static_cast<double>((k * 7 + 3) % 11) - 5;
      in[name] = v;
    }
    const auto r = interpret(g, in).outputs;
    EXPECT_EQ(r.at("difference").f[0], 0) << axes;
    EXPECT_GT(r.at("size").f[0], 100) << axes;
  }
}

TEST(Regions, Mistakes) {
  Graph g;
  const Tensor x = g.input("x", {1, 4, 6, 6}), boxes = g.input("b", {3, 4}), at = g.input("a", {3}, DType::I64);
  expect_error([&] { roi_align(x, boxes, boxes, {}); },
               "roi_align: an image [1, 4, 6, 6], boxes [3, 4] and images [3, 4] are not [b, c, h, w], [n, 4] and [n]",
               "regions_test.cpp");
  expect_error([&] { roi_align(x, boxes, at, {.height = 0}); }, "roi_align: 0 x 1 bins: there is at least one",
               "regions_test.cpp");
  expect_error([&] { roi_pool(x, boxes, boxes.select(1, 0), 2, 2); }, "roi_pool: images are integers, not f32",
               "regions_test.cpp");
  const Tensor w = g.input("w", {4, 4, 3, 3}), offset = g.input("o", {1, 17, 4, 4});
  expect_error([&] { deform_conv(x, w, offset); }, "deform_conv: an offset [1, 17, 4, 4] is not [b, 18, ..]",
               "regions_test.cpp");
}

}  // namespace
