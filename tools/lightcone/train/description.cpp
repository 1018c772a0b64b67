#include "description.h"

#include <cmath>

#include "nets.h"
#include "section.h"

namespace lc::tool {
namespace {

constexpr const char* kKey = "lightcone.model";
constexpr i64 kVersion = 1;

Json model_section(const ModelConfig& m) {
  Json j{{"kind", m.kind}};
  if (m.kind == "mlp") j["hidden"] = m.hidden, j["dropout"] = m.dropout;
  if (m.kind == "vgg") j["dropout"] = m.dropout;
  if (m.kind == "vgg" || m.kind == "resnet") j["depth"] = m.depth, j["width"] = m.width;
  if (m.width_divisor > 1) j["width_divisor"] = m.width_divisor;
  return j;
}

// Returns Pillow's name for a picture's channels.
std::string channels(const DataConfig& d) {
  const i64 n = channels_of(d);
  return n == 1 ? "L" : n == 3 ? "RGB" : std::to_string(n);
}

Json inputs_section(const ModelDescription& s) {
  const DataConfig& d = s.data;
  Json j{{"format", d.format}, {"shape", d.shape}, {"bytes", s.bytes}, {"scale", d.scale}};
  if (!d.rows()) j["channels"] = channels(d);
  if (!d.mean.empty()) j["mean"] = d.mean, j["std"] = d.std;
  if (d.resize > 0) j["resize"] = d.resize;
  if (d.format != "csv") return j;
  j["header"] = d.header, j["missing"] = d.missing == "number" || d.missing == "mean" ? "fill" : d.missing;
  if (!d.features.empty()) j["features"] = d.features;
  if (!d.na_values.empty()) j["na_values"] = d.na_values;
  if (!s.fill.empty()) j["fill"] = s.fill;
  return j;
}

Json outputs_section(const ModelDescription& s) {
  Json j{{"task", s.data.regression ? "regression" : "classification"}};
  if (s.data.format == "csv" && s.data.header) j["label"] = s.data.label;
  if (s.data.regression) j["mean"] = s.target_mean, j["std"] = s.target_std;
  else j["classes"] = s.classes;
  return j;
}

constexpr double kMost = 3e38;

void read_inputs(Section s, ModelDescription& to) {
  DataConfig& d = to.data;
  s.one_of("format", d.format, {"csv", "npy", "npz", "idx", "cifar10", "cifar100", "images"}, true);
  s.wholes("shape", d.shape, 3, true);
  if (d.shape.empty() || (to.model.kind != "mlp" && d.rows())) s.wrong("shape", ", no sample of this network has it");
  double elements = 1;
  for (const i64 n : d.shape) elements *= static_cast<double>(n);
  if (elements > 1e9) s.wrong("shape", ", which is more than a billion numbers");
  s.flag("bytes", to.bytes), s.number("scale", d.scale, 1e-30, 1e30);
  if (d.scale <= 0) s.fail("inputs.scale is missing");
  std::string channels;
  if (!d.rows()) s.text("channels", channels);
  const auto each = static_cast<std::size_t>(d.rows() ? d.shape[0] : channels_of(d));
  s.numbers("mean", d.mean, each, -kMost, kMost), s.numbers("std", d.std, each, 1e-30, kMost);
  if (d.mean.size() != d.std.size()) s.fail("inputs.mean and inputs.std are given together");
  if (d.format == "images") s.whole("resize", d.resize, 0);
  if (d.format == "csv") {
    s.flag("header", d.header), s.texts("features", d.features, true), s.texts("na_values", d.na_values);
    s.one_of("missing", d.missing, {"error", "skip", "fill"});
    s.numbers("fill", to.fill, each, -kMost, kMost);
    if ((d.missing == "fill") != !to.fill.empty()) s.fail("inputs.fill goes with inputs.missing = fill");
    if (!d.rows() || std::ssize(d.features) != (d.header ? d.shape[0] : 0))
      s.fail("inputs.features must name as many columns as inputs.shape says");
  }
  s.finish();
}

void read_outputs(Section s, ModelDescription& to) {
  std::string task;
  s.one_of("task", task, {"classification", "regression"}, true);
  to.data.regression = task == "regression";
  s.text("label", to.data.label);
  if (to.data.regression) {
    s.number("mean", to.target_mean, -kMost, kMost), s.number("std", to.target_std, 1e-30, kMost);
    to.data.classes = 1;
  } else {
    s.texts("classes", to.classes);
    to.data.classes = std::ssize(to.classes);
    if (to.data.classes < 2) s.fail("outputs.classes names fewer than two classes");
  }
  s.finish();
}

}  // namespace

std::vector<Transform> ModelDescription::transforms() const {
  std::vector<Transform> list;
  const auto floats = [](const std::vector<double>& v) { return std::vector<float>(v.begin(), v.end()); };
  if (!fill.empty())
    list.emplace_back(EachSample{[by = floats(fill)](Array& sample, SeededRandom&) {
      const auto x = sample.values<float>();
      for (std::size_t c = 0; c < by.size(); ++c)
        if (std::isnan(x[c])) x[c] = by[c];
    }});
  list.emplace_back(ToFloat{static_cast<float>(data.scale)});
  if (data.mean.empty()) return list;
  if (!data.rows()) {
    list.emplace_back(Normalize{floats(data.mean), floats(data.std)});
    return list;
  }
  list.emplace_back(EachSample{[mean = floats(data.mean), std = floats(data.std)](Array& sample, SeededRandom&) {
    const auto x = sample.values<float>();
    for (std::size_t c = 0; c < mean.size(); ++c) x[c] = (x[c] - mean[c]) / std[c];
  }});
  return list;
}

std::map<std::string, std::string> ModelDescription::metadata() const {
  const Json j{{"version", kVersion},
               {"model", model_section(model)},
               {"inputs", inputs_section(*this)},
               {"outputs", outputs_section(*this)}};
  return {{kKey, j.dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

namespace {

// Parses sections of sections, but nothing deeper, which would exhaust the stack when it is printed.
Json parsed(const std::string& text, const std::string& path) {
  constexpr int kDeepest = 4;
  constexpr std::size_t kLongest = std::size_t{64} << 20;
  const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) throw file_error("predict", path, "its metadata \"", kKey, "\" nest too deeply");
    return true;
  };
  if (text.size() > kLongest) throw file_error("predict", path, "its metadata \"", kKey, "\" are longer than 64 MB");
  try {
    return Json::parse(text, shallow);
  } catch (const Json::exception&) {
    throw file_error("predict", path, "its metadata \"", kKey, "\" are no JSON");
  }
}

}  // namespace

ModelDescription ModelDescription::of(const Weights& file) {
  const auto found = file.metadata().find(kKey);
  if (found == file.metadata().end())
    throw file_error(
        "predict", file.path(), "it does not say what it was trained on (no \"", kKey,
        "\" in its metadata): `lightcone train` writes that into best.safetensors of classifiers and ",
        "regressions; language models are for `lightcone generate`, and a published classifier is a folder");
  const Json j = parsed(found->second, file.path());
  if (!j.is_object() || !j.contains("version") || j.at("version") != kVersion)
    throw file_error("predict", file.path(), "its metadata \"", kKey, "\" are not of version ", kVersion,
                     ": another release of lightcone wrote it");
  ModelDescription d;
  const std::string name = file.path() + " (metadata)";
  read_model(Section(name, j, "model", true, nullptr), d.model);
  if (d.model.kind == "llama" || d.model.kind == "encoder" || d.model.kind == "vision" || d.model.depth > 10'000)
    throw file_error("predict", file.path(), "its metadata \"", kKey, "\" describe no network of classes or numbers");
  read_inputs(Section(name, j, "inputs", true, nullptr), d);
  read_outputs(Section(name, j, "outputs", true, nullptr), d);
  return d;
}

}  // namespace lc::tool
