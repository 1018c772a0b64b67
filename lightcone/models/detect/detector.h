// Detector: the objects in pictures, by a detector that load_model() reads.
//
//   Detector detector = Detector::load("yolo11n.pt");
//   for (const Detection& d : detector.detect(read_image("photo.jpg")))
//     std::cout << detector.label(d.label) << ' ' << d.score << '\n';
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/models/detect/detections.h"
#include "lightcone/models/files/loaded_model.h"
#include "lightcone/runtime/program.h"

namespace lc {

// An object in a picture: corners in pixels of the picture, with (0, 0) at its upper left corner.
struct Detection {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  double score = 0;        // from 0 to 1
  std::int64_t label = 0;  // the number of its class
};

// Options of Detector.
struct DetectorOptions {
  DetectionOptions choose = {};
  std::int64_t height = 640, width = 640;  // the input of the network has this size; pictures are fitted into it
  std::optional<Compiler> compiler = {};   // unset: default_compiler({threads})
  int threads = 0;                         // 0: all cores
  std::vector<std::string> ignore = {};    // keys of config.json (LoadModelOptions)
  ReadOptions read = {};
};

// A loaded detector. Objects may be moved; one thread at a time calls detect().
class Detector {
 public:
  // Opens what load_model() opens. Throws Error for the same reasons, and for a model without boxes and scores.
  static Detector load(const std::string& path, const DetectorOptions& o = {});
  // Finds the objects in a picture u8 [3, height, width] of read_image(), by descending scores. A picture is fitted
  // into the input of the network with grey bars at two sides (a letterbox). Throws Error for another array.
  std::vector<Detection> detect(const Array& picture);

  const std::vector<std::string>& labels() const { return model_->labels; }
  // The name of a class; "class 7" of one without.
  std::string label(std::int64_t number) const;
  const Program& program() const { return network_; }

 private:
  // The letterbox of pictures of one size.
  struct Fitting;
  Detector(DetectorOptions o, LoadedModel m);
  Fitting& fitting(std::int64_t height, std::int64_t width);

  DetectorOptions o_;
  std::shared_ptr<LoadedModel> model_;
  Program network_;
  std::shared_ptr<Context> run_;
  std::shared_ptr<Fitting> fitting_;  // the one that was used last
};

}  // namespace lc
