#include "lightcone/models/yolo/yolo.h"

#include <algorithm>

#include "lightcone/base/numbers.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/files/pictures.h"
#include "lightcone/models/yolo/layers.h"

namespace lc {
namespace {

constexpr std::int64_t kPicture = 640;
constexpr std::int64_t kMostClasses = 1 << 16;

// Where the layers are: Ultralytics keeps the average of the weights, if there is one, beside those of the last step.
constexpr std::string_view kRoots[] = {"ema.model", "model", "model.model"};

std::optional<std::string> root_of(const Weights& w) {
  for (const std::string_view root : kRoots)
    if (w.modules().contains(str_cat(root, ".0")) && w.find(str_cat(root, ".0.conv.weight"))) return std::string(root);
  return std::nullopt;
}

// The names of the classes, which the model has in an attribute: an object of numbers and names, or a list.
std::vector<std::string> names_of(const Weights& w, const std::string& root, std::int64_t classes) {
  std::vector<std::string> all;
  for (std::int64_t k = 0; k < classes; ++k) all.push_back(str_cat("LABEL_", k));
  for (const std::string& key : {root.starts_with("ema") ? std::string("ema.names") : std::string("model.names")}) {
    const auto at = w.metadata().find(key);
    if (at == w.metadata().end()) return all;
    Budget budget(w.options(), w.path());
    budget.parsed(at->second.size());
    const io::JsonDocument document(at->second, w.path() + ": " + key, budget);
    const io::Json names = document.root();
    if (static_cast<std::int64_t>(names.size()) != classes)
      throw file_error("load_model", w.path(), names.size(), " names for ", classes, " classes");
    std::size_t k = 0;
    for (const auto& [number, name] : names) {
      const auto n = names.is(io::Json::Kind::Object) ? real_of<double>(number) : static_cast<double>(k);
      if (!n || !(*n >= 0 && *n < static_cast<double>(classes)) || !name.is(io::Json::Kind::String))
        throw file_error("load_model", w.path(), "the names of classes are no list of texts");
      all[static_cast<std::size_t>(*n)] = std::string(name.text()), ++k;
    }
  }
  return all;
}

constexpr WeightName kModelNames[] = {
    {"model.#.dfl.conv", ""},  // the numbers of the bins
    {"model.#.anchor_grid", ""},
    {"model", "model"},
};
constexpr WeightName kBesideAverage[] = {
    {"model.model", ""}, {"optimizer", ""}, {"model.#.dfl.conv", ""}, {"model.#.anchor_grid", ""}, {"model", "model"}};
constexpr std::string_view kAverage[] = {"ema."};
constexpr std::string_view kWrapped[] = {"model."};

LoadedModel loaded(const Weights& w, const YoloNet& net, WeightTable weights, std::vector<std::string> labels,
                   const PictureSize& size, const LoadModelOptions& o) {
  LoadedModel m("yolo", std::move(weights));
  m.architecture = "YOLO", m.labels = std::move(labels);
  const YoloNet& made = m.add(net);
  m.weights.require_all_used("a YOLO");
  const YoloOutput y = made(picture_input(m, o, made.channels(), size));
  m.give("boxes", y.boxes), m.give("scores", y.scores), m.give("raw", y.raw);
  m.retrieve(o);
  if (net.classes() > kMostClasses) throw file_error("load_model", w.path(), net.classes(), " classes");
  return m;
}

}  // namespace

bool is_yolo(const Weights& w) { return root_of(w).has_value(); }

LoadedModel load_yolo(const Weights& w, const LoadModelOptions& o) {
  const std::string root = root_of(w).value_or("model");
  const YoloSource source(w, root);
  const YoloNet net(source, yolo_layers(source));
  if (net.classes() > kMostClasses) source.refuse(str_cat(net.classes(), " classes"));
  const PictureSize size = picture_size(w.path(), o, {kPicture, kPicture});
  WeightTable table = root == "ema.model"     ? WeightTable(w, kAverage, kBesideAverage)
                      : root == "model.model" ? WeightTable(w, kWrapped, kModelNames)
                                              : WeightTable(w, {}, kModelNames);
  return loaded(w, net, std::move(table), names_of(w, root, net.classes()), size, o);
}

LoadedModel load_yolo_v8(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  YoloSource source(w, "model");
  source.zero_pools = config.flag("cai_maxpool", true);
  const YoloNet net(source, yolo_v8_layers());
  std::vector<std::string> labels = config.labels();
  const std::int64_t classes = config.size("num_classes", std::ssize(labels));
  if (classes != net.classes())
    config.fail("num_classes is ", classes, ", and the weights are of ", net.classes(), " classes");
  if (std::ssize(labels) != classes) {
    labels.clear();
    for (std::int64_t k = 0; k < classes; ++k) labels.push_back(str_cat("LABEL_", k));
  }
  if (config.size("num_channels", net.channels()) != net.channels())
    config.fail("num_channels is not that of the weights, ", net.channels());
  if (config.number("bn_eps", 1e-3) != 1e-3) config.fail("bn_eps is another than 0.001, which all YOLOv8 have");
  const std::vector<std::int64_t> strides = config.sizes("strides");
  if (!strides.empty() && strides != std::vector<std::int64_t>{8, 16, 32}) config.fail("strides are not 8, 16 and 32");
  // the shapes of the weights say these
  config.neutral({"widths", "depths", "reg_max", "box_hidden", "cls_hidden"});
  const PictureSize size = picture_size(config, o, trained_size(config, kPicture));
  config.require_all_known("yolov8");
  return loaded(w, net, WeightTable(w, {}, kModelNames), std::move(labels), size, o);
}

}  // namespace lc
