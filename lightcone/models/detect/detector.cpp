#include "lightcone/models/detect/detector.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/models/load/load_model.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "lightcone/ops/vision/pictures.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/default_compiler.h"

namespace lc {
namespace {

constexpr const char* kWho = "detect";

Compiler compiler_of(const DetectorOptions& o) {
  return o.compiler ? *o.compiler : default_compiler({.threads = o.threads});
}

}  // namespace

struct Detector::Fitting {
  std::int64_t height, width;
  Letterbox box;
  Graph graph;
  Program program;
  std::unique_ptr<Context> run;

  Fitting(std::int64_t h, std::int64_t w, const DetectorOptions& o) : height(h), width(w) {
    const Tensor bytes = graph.input("picture", {3, h, w}, DType::U8);
    box = letterbox(unsqueeze(to(bytes, DType::F32), 0) / 255.0, {.height = o.height, .width = o.width});
    graph.output("pixel_values", box.picture);
    program = compile(graph, compiler_of(o));
    run = std::make_unique<Context>(program);
  }
  // The corners of a box in the picture.
  Detection in_picture(const float* b) const {
    const auto x = [&](float v) { return place(v, box.left, width); };
    const auto y = [&](float v) { return place(v, box.top, height); };
    return {.x1 = x(b[0]), .y1 = y(b[1]), .x2 = x(b[2]), .y2 = y(b[3])};
  }
  double place(float v, std::int64_t bar, std::int64_t extent) const {
    return std::clamp((static_cast<double>(v) - static_cast<double>(bar)) / box.scale, 0.0,
                      static_cast<double>(extent));
  }
};

Detector::Detector(DetectorOptions o, LoadedModel m)
    : o_(std::move(o)), model_(std::make_shared<LoadedModel>(std::move(m))) {
  const auto boxes = model_->outputs.find("boxes"), scores = model_->outputs.find("scores");
  if (boxes == model_->outputs.end() || scores == model_->outputs.end())
    throw Error(kWho,
                str_cat("a ", model_->architecture, " has no boxes and scores: it is no detector that is supported"));
  const DetectionTensors d = detections(select(boxes->second, 0, 0), select(scores->second, 0, 0), o_.choose);
  Graph& g = model_->graph();
  g.output("detected.boxes", d.boxes), g.output("detected.scores", d.scores);
  g.output("detected.classes", d.classes), g.output("detected.count", d.count);
  network_ = model_->program(compiler_of(o_));
  run_ = std::make_shared<Context>(network_);
}

Detector Detector::load(const std::string& path, const DetectorOptions& o) {
  return {o, load_model(path, {.ignore = o.ignore,
                               .batch = 1,
                               .outputs = std::vector<std::string>{},
                               .height = o.height,
                               .width = o.width,
                               .read = o.read})};
}

std::string Detector::label(std::int64_t number) const {
  return number >= 0 && number < std::ssize(labels()) ? labels()[static_cast<std::size_t>(number)]
                                                      : str_cat("class ", number);
}

Detector::Fitting& Detector::fitting(std::int64_t height, std::int64_t width) {
  if (!fitting_ || fitting_->height != height || fitting_->width != width)
    fitting_ = std::make_shared<Fitting>(height, width, o_);
  return *fitting_;
}

std::vector<Detection> Detector::detect(const Array& picture) {
  if (picture.dtype != DType::U8 || picture.shape.size() != 3 || picture.shape[0] != 3 || picture.bytes.empty())
    throw Error(kWho, str_cat("needs a picture u8 [3, height, width], as read_image() gives it, not ",
                              name(picture.dtype), " with ", picture.shape.size(), " axes"));
  Fitting& f = fitting(picture.shape[1], picture.shape[2]);
  f.run->set("picture", picture).run();
  run_->set("pixel_values", f.run->get("pixel_values")).run();
  const std::vector<float> boxes = run_->get("detected.boxes"), scores = run_->get("detected.scores");
  const std::vector<double> classes = run_->get_f64("detected.classes"), count = run_->get_f64("detected.count");
  std::vector<Detection> all;
  for (std::size_t k = 0; k < static_cast<std::size_t>(count.at(0)); ++k) {
    Detection d = f.in_picture(boxes.data() + 4 * k);
    d.score = static_cast<double>(scores[k]), d.label = static_cast<std::int64_t>(classes[k]);
    all.push_back(d);
  }
  return all;
}

}  // namespace lc
