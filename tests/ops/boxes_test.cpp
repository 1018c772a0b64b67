// Boxes: overlaps, formats and non-maximum suppression give torchvision's and ONNX's answers (tests/goldens/boxes.txt),
// padded to their bounds.
#include "lightcone/ops/vision/boxes.h"

#include <algorithm>
#include <sstream>

#include "error_of.h"
#include "lightcone/runtime/program.h"
#include "torch_cases.h"

using namespace lc;

namespace {

// Pads the rows of i64 results with -1 and appends the count.
std::vector<Value> bounded(const Value& found, std::int64_t room) {
  std::vector<std::int64_t> shape = found.shape;
  const std::int64_t count = shape[0];
  shape[0] = room;
  Value all = make_value(DType::I64, shape), n = make_value(DType::I64, {});
  std::ranges::fill(all.i, -1);
  std::ranges::copy(found.i, all.i.begin());
  n.i[0] = count;
  return {all, n};
}

std::vector<Tensor> built(const std::string& name, const std::vector<Tensor>& t) {
  std::istringstream words(name);
  std::string what, first, second;
  words >> what >> first >> second;
  const auto both = [](const auto& r) { return std::vector{r.indices, r.count}; };
  if (what == "iou") return {box_iou(t[0], t[1])};
  if (what == "area") return {box_area(t[0])};
  if (what == "convert") return {box_convert(t[0], first, second)};
  if (what == "clip") return {clip_boxes(t[0], std::stod(first), std::stod(second))};
  if (what == "nms") return both(nms(t[0], t[1], std::stod(first)));
  if (what == "batched") return both(batched_nms(t[0], t[1], t[2], std::stod(first)));
  NonMaxSuppressionOptions o{.max_output_boxes_per_class = std::stoll(first), .iou_threshold = std::stod(second)};
  words >> first >> second;
  if (first != "None") o.score_threshold = std::stod(first);
  o.center_point_box = second == "1";
  return both(non_max_suppression(t[0], t[1], o));
}

TEST(Boxes, AnswerAsTorchvisionAndOnnxDo) {
  Graph g;
  std::map<std::string, Value> inputs, want;
  for (const TorchCase& c : torch_cases("boxes.txt")) {
    std::vector<Tensor> in;
    for (const Value& v : c.in) {
      const std::string name = str_cat("in ", inputs.size());
      in.push_back(g.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      inputs[name] = v;
    }
    const std::vector<Tensor> out = built(c.name, in);
    const std::vector<Value> answers = out.size() == 1 ? c.out : bounded(c.out[0], out[0].extent(0).constant().value());
    for (std::size_t k = 0; k < out.size(); ++k) {
      const std::string name = str_cat(want.size(), " ", c.name);
      g.output(name, out[k]), want[name] = answers[k];
    }
  }
  ASSERT_GT(want.size(), 40u);
  const auto reference = interpret(g, inputs, {}, Rounding::Storage).outputs;
  const auto compiled = run_values(transform(g, generic() | test::device({.threads = 2})).graph, inputs, {}).outputs;
  for (const auto& [name, v] : want)
    for (const auto* have : {&reference, &compiled}) {
      const Value& got = have->at(name);
      ASSERT_EQ(got.shape, v.shape) << name;
      ASSERT_EQ(got.dtype, v.dtype) << name;
      if (v.dtype == DType::I64) EXPECT_EQ(got.i, v.i) << name;
      else
        for (std::size_t k = 0; k < v.size(); ++k) EXPECT_NEAR(got.f[k], v.f[k], 1e-6 * std::abs(v.f[k])) << name;
    }
}

// The candidates among thousands of boxes are moved together, unless there are too many: both ways select what a plain
// loop over the sorted boxes does.
TEST(Boxes, ManyBoxes) {
  const std::int64_t n = 3000;
  Graph g;
  const Tensor boxes = g.input("boxes", {1, n, 4}), scores = g.input("scores", {1, 2, n});
  const SelectedBoxes few = non_max_suppression(
      boxes, scores, {.max_output_boxes_per_class = 9, .iou_threshold = 0.3, .score_threshold = 0.9});
  g.output("indices", few.indices), g.output("count", few.count);
  const Program p = compile(g, generic() | test::device());
  Context run(p);
  std::vector<float> b, s(static_cast<std::size_t>(2 * n));
  for (int k = 0; k < n; ++k) {
    const float x = static_cast<float>(k * 37 % 301), y = static_cast<float>(k * 91 % 211);
    b.insert(b.end(), {x, y, x + 30 + static_cast<float>(k % 17), y + 40});
  }
  for (const int period : {997, 1009}) {  // a tenth of the scores are candidates, and then all of the first class
    for (std::size_t k = 0; k < s.size(); ++k)
      s[k] = static_cast<float>(k * 613 % static_cast<std::size_t>(period)) / 1010;
    if (period == 1009)
      for (std::size_t k = 0; k < 3000; ++k) s[k] = 0.9f + s[k] / 16 + 0.01f;
    std::vector<std::int64_t> want;
    for (std::int64_t c = 0; c < 2; ++c) {
      const float* score = s.data() + c * n;
      std::vector<std::int64_t> order, kept;
      for (std::int64_t k = 0; k < n; ++k)
        if (score[k] > 0.9f) order.push_back(k);
      std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return score[i] > score[j]; });
      const auto overlap = [&](std::int64_t i, std::int64_t j) {
        const float *p = b.data() + 4 * i, *q = b.data() + 4 * j;
        const float w = std::min(p[2], q[2]) - std::max(p[0], q[0]), h = std::min(p[3], q[3]) - std::max(p[1], q[1]);
        const float common = std::max(w, 0.0f) * std::max(h, 0.0f);
        return common / ((p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]) - common) > 0.3f;
      };
      for (const std::int64_t k : order)
        if (kept.size() < 9 && std::ranges::none_of(kept, [&](auto i) { return overlap(k, i); })) kept.push_back(k);
      for (const std::int64_t k : kept) want.insert(want.end(), {0, c, k});
    }
    const std::size_t count = want.size() / 3;
    EXPECT_GT(count, 9u);
    want.resize(2 * 9 * 3, -1);
    run.set("boxes", b).set("scores", s).run();
    EXPECT_EQ(run.get_i64("count")[0], static_cast<std::int64_t>(count));
    EXPECT_EQ(run.get_i64("indices"), want) << period;
  }
}

// Room for fewer boxes keeps the best; room for none, or suppression of nothing, gives no rows.
TEST(Boxes, Room) {
  Graph g;
  const Tensor boxes = g.input("boxes", {4, 4}), scores = g.input("scores", {4});
  const KeptBoxes two = nms(boxes, scores, 0.5, 2), six = nms(boxes, scores, 0.5, 6), none = nms(boxes, scores, 0.5, 0);
  g.output("two", two.indices), g.output("six", six.indices), g.output("none", none.indices);
  g.output("count", six.count);
  EXPECT_EQ(str(non_max_suppression(boxes.unsqueeze(0), scores.reshape({1, 1, 4}), {}).indices.shape()), "[0, 3]");
  std::map<std::string, Value> in{{"boxes", make_value(DType::F32, {4, 4})}, {"scores", make_value(DType::F32, {4})}};
  in["boxes"].f = {0, 0, 4, 4, 0, 0, 4, 5, 10, 0, 14, 4, 20, 0, 24, 4};
  in["scores"].f = {0.5, 0.75, 0.25, 1};
  const auto r = interpret(g, in).outputs;
  EXPECT_EQ(r.at("two").i, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(r.at("six").i, (std::vector<std::int64_t>{3, 1, 2, -1, -1, -1}));
  EXPECT_EQ(r.at("none").size(), 0u);
  EXPECT_EQ(r.at("count").i[0], 3);
}

TEST(Boxes, Mistakes) {
  Graph g;
  const Tensor boxes = g.input("boxes", {5, 4}), scores = g.input("scores", {6});
  expect_error([&] { nms(boxes, scores, 0.5); }, "nms: boxes [5, 4] and scores [6] are not [n, 4] and [n]",
               "boxes_test.cpp");
  expect_error([&] { box_area(scores); }, "box_area: boxes are [.., 4], not [6]", "boxes_test.cpp");
  expect_error([&] { box_convert(boxes, "xyxy", "yolo"); },
               "box_convert: there is no format \"yolo\"; there are \"xyxy\", \"xywh\", \"cxcywh\"", "boxes_test.cpp");
  expect_error([&] { non_max_suppression(boxes, scores, {}); },
               "non_max_suppression: boxes [5, 4] and scores f32 [6] are not [b, n, 4] and floating [b, c, n]",
               "boxes_test.cpp");
  expect_error([&] { batched_nms(boxes, boxes.select(1, 0), scores, 0.5); }, "batched_nms: idxs are integers, not f32",
               "boxes_test.cpp");
}

}  // namespace
