// Detectors of the YOLO family give the numbers that others computed of the same files, and the Detector finds what is
// in a picture.
#include "lightcone/models/yolo/yolo.h"

#include "error_of.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/models/detect/detector.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;
using test::numbers_of;

// A YOLOv8 of 3 classes by the names of its weights. The file's numbers are those of a program in f64.
TEST(Yolo, V8ByNames) {
  NEEDS_DATA(test::kTiny + "yolo.safetensors");
  const test::TinyFolder folder("yolo");
  const json answers = test::tiny_answers("yolo_io");
  const LoadedModel m = load_model(folder.path());
  EXPECT_EQ(m.labels.size(), 3u);
  const test::AllGiven given{{"pixel_values", {{1, 3, 96, 96}, numbers_of(answers["input"])}}};
  const std::vector<double> want = numbers_of(answers["output"]);
  const auto exact = test::by_reference(m, given, {{"batch", 1}});
  EXPECT_LT(test::farthest(exact.at("raw"), want), 1e-5);
  EXPECT_LT(test::farthest(test::by_cpu(m, given, {{"batch", 1}}).at("raw"), want), 1e-4);
  EXPECT_EQ(exact.at("boxes").size(), 189u * 4);
  EXPECT_EQ(exact.at("scores").size(), 189u * 3);
}

const std::string kNine = "models/yolov9t/";

// onnxruntime computed the raw heads of the pickled YOLOv9t in f32.
TEST(Yolo, V9OfPickledModules) {
  NEEDS_DATA(kNine + "yolov9t.pt");
  const LoadedModel m = load_model(data(kNine + "yolov9t.pt"), {.height = 352, .width = 640});
  EXPECT_EQ(m.labels, std::vector<std::string>{"ball"});
  const Arrays answers = read_npz(data(kNine + "yolov9t_volleyball_640.npz"));
  std::vector<double> pixels;
  for (const std::uint8_t b : answers.at("x").values<std::uint8_t>()) pixels.push_back(b / 255.0);
  std::vector<double> want;  // [65, h, w] of each stride -> rows of 65
  for (const char* map : {"p3", "p4", "p5"}) {
    const std::span<const float> v = answers.at(map).values<float>();
    const std::size_t cells = v.size() / 65;
    for (std::size_t k = 0; k < cells; ++k)
      for (std::size_t c = 0; c < 65; ++c) want.push_back(static_cast<double>(v[c * cells + k]));
  }
  const auto got = test::by_cpu(m, {{"pixel_values", {{1, 3, 352, 640}, pixels}}}, {{"batch", 1}});
  EXPECT_LT(test::farthest(got.at("raw"), want), 2e-3);  // both round, and the largest numbers are 20
  // The best boxes of the answers are in pixels of the picture, 1920 x 1080 or as large as it is.
  const auto& scores = got.at("scores");
  const std::size_t best = static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
  EXPECT_NEAR(scores[best], static_cast<double>(answers.at("top_score").values<float>()[0]), 1e-4);
  const Array picture = read_image(data(kNine + "image.jpg"));
  const double across = static_cast<double>(picture.shape[2]) / 640, down = static_cast<double>(picture.shape[1]) / 352;
  for (std::size_t k = 0; k < 4; ++k)
    EXPECT_NEAR(got.at("boxes")[best * 4 + k] * (k % 2 ? down : across), answers.at("top_box").values<double>()[k],
                0.1);
}

// What Ultralytics' own program (8.4.190: predict, imgsz=640, conf=0.03, iou=0.45, rect=False) finds in the picture.
TEST(Yolo, DetectorFindsWhatUltralyticsFinds) {
  NEEDS_DATA(kNine + "yolov9t.pt");
  if (!can_read_images()) GTEST_SKIP() << "built without decoders";
  Detector detector = Detector::load(data(kNine + "yolov9t.pt"), {.choose = {.confidence = 0.03}, .threads = 2});
  const std::vector<Detection> found = detector.detect(read_image(data(kNine + "image.jpg")));
  const std::vector<Detection> want{{113.565, 391.408, 143.662, 425.508, 0.06224, 0},
                                    {1229.824, 658.720, 1246.240, 686.069, 0.05214, 0},
                                    {1309.036, 391.204, 1335.317, 422.518, 0.05132, 0},
                                    {1223.904, 419.284, 1242.163, 443.289, 0.03510, 0}};
  ASSERT_EQ(found.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    EXPECT_EQ(detector.label(found[k].label), "ball");
    EXPECT_NEAR(found[k].score, want[k].score, 1e-4);
    const double off[] = {found[k].x1 - want[k].x1, found[k].y1 - want[k].y1, found[k].x2 - want[k].x2,
                          found[k].y2 - want[k].y2};
    for (const double d : off) EXPECT_LT(std::fabs(d), 0.05) << k;
  }
}

// The better of two boxes that overlap stays, in each class; boxes below the confidence are left out.
TEST(Yolo, DetectionsOfBoxes) {
  Graph g;
  const Tensor boxes = g.input("boxes", {5, 4}), scores = g.input("scores", {5, 2});
  const DetectionTensors d = detections(boxes, scores, {.confidence = 0.3, .overlap = 0.5, .most = 4});
  g.output("boxes_out", d.boxes), g.output("scores_out", d.scores), g.output("classes", d.classes);
  g.output("count", d.count);
  const Program p = compile(g, generic() | cpu());
  Context run(p);
  run.set("boxes", std::vector<float>{0, 0, 10, 10, 0, 0, 10, 9, 0, 0, 10, 10, 20, 20, 30, 30, 50, 50, 60, 60});
  run.set("scores", std::vector<float>{0.5f, 0.1f, 0.9f, 0.1f, 0.1f, 0.6f, 0.2f, 0.2f, 0.3f, 0.1f}).run();
  EXPECT_EQ(run.get_f64("count"), std::vector<double>{3});
  EXPECT_EQ(run.get("scores_out"), (std::vector<float>{0.9f, 0.6f, 0.3f, 0}));
  EXPECT_EQ(run.get_f64("classes"), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(run.get("boxes_out"), (std::vector<float>{0, 0, 10, 9, 0, 0, 10, 10, 50, 50, 60, 60, 0, 0, 0, 0}));
}

TEST(Yolo, Mistakes) {
  NEEDS_DATA(test::kTiny + "yolo.safetensors");
  const test::TinyFolder folder("yolo");
  EXPECT_PRED2(contains, error_of([&] { load_model(folder.path(), {.height = 100, .width = 96}); }),
               "multiples of the largest stride");
  json config = json::parse(slurp(folder.folder / "config.json"));
  const auto with = [&](const char* key, const json& value) {
    json changed = config;
    changed[key] = value;
    spit(folder.folder / "config.json", changed.dump());
    return error_of([&] { load_model(folder.path()); });
  };
  EXPECT_PRED2(contains, with("num_classes", 4), "num_classes is 4, and the weights are of 3 classes");
  EXPECT_PRED2(contains, with("anchors", 3), "anchors is 3, and no key of this name is known");
  EXPECT_PRED2(contains, with("image_size", 1 << 20), "sides from 1 to 16384");
}

}  // namespace
