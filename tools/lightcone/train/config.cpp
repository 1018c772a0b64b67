#include "config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "lightcone/core/error.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/vision/vision.h"
#include "../spelling.h"

namespace lc::tool {
namespace {

using Json = nlohmann::json;

std::string quoted(const Json& j) { return printable(j.dump(-1, ' ', true, Json::error_handler_t::replace), 200); }

// One section: each key is taken once, with the type and the range it must have.
class Section {
 public:
  Section(const std::string& path, const Json& all, std::string name, bool needed, std::vector<std::string>* decisive)
      : path_(path), name_(std::move(name)), decisive_(decisive) {
    if (all.contains(name_)) j_ = all.at(name_);
    else if (needed) fail("the section \"", name_, "\" is missing");
    if (!j_.is_object()) fail("\"", name_, "\" must be a section, { ... }");
  }
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    throw Error("config", str_cat(printable(path_, 300), ": ", what...));
  }
  template <class... Ts>
  [[noreturn]] void wrong(const std::string& key, const Ts&... what) const {
    fail(name_, ".", key, " is ", quoted(j_.at(key)), what...);
  }
  bool has(const std::string& key) const { return j_.contains(key); }

  void whole(const std::string& key, i64& value, i64 least, bool needed = false) {
    if (!take(key, needed)) return;
    const Json& v = j_.at(key);
    if (!v.is_number_integer() || v.get<double>() < static_cast<double>(least) || v.get<double>() > 1e12)
      wrong(key, ", it must be a whole number of at least ", least);
    value = v.get<i64>();
  }
  void number(const std::string& key, double& value, double least, double most) {
    if (!take(key, false)) return;
    const Json& v = j_.at(key);
    if (!v.is_number() || !(v.get<double>() >= least && v.get<double>() <= most))
      wrong(key, ", it must be a number from ", least, " to ", most);
    value = v.get<double>();
  }
  void flag(const std::string& key, bool& value) {
    if (!take(key, false)) return;
    if (!j_.at(key).is_boolean()) wrong(key, ", it must be true or false");
    value = j_.at(key).get<bool>();
  }
  void text(const std::string& key, std::string& value, bool needed = false) {
    if (!take(key, needed)) return;
    if (!j_.at(key).is_string()) wrong(key, ", it must be a text in quotes");
    value = j_.at(key).get<std::string>();
  }
  void one_of(const std::string& key, std::string& value, const std::vector<std::string>& known, bool needed = false) {
    text(key, value, needed);
    std::string all;
    for (const std::string& k : known) {
      if (k == value) return;
      all += (all.empty() ? "" : ", ") + k;
    }
    wrong(key, ", it must be one of ", all);
  }
  void wholes(const std::string& key, std::vector<i64>& values, std::size_t most, bool needed = false) {
    if (!take(key, needed)) return;
    const Json& v = j_.at(key);
    bool good = v.is_array() && v.size() <= most;
    for (std::size_t k = 0; good && k < v.size(); ++k)
      good = v[k].is_number_integer() && v[k].get<double>() >= 1 && v[k].get<double>() <= 1e9;
    if (!good) wrong(key, ", it must be a list of at most ", most, " whole numbers above 0");
    values = v.get<std::vector<i64>>();
  }
  void numbers(const std::string& key, std::vector<double>& values, std::size_t count, double least, double most) {
    if (!take(key, false)) return;
    const Json& v = j_.at(key);
    bool good = v.is_array() && v.size() == count;
    for (std::size_t k = 0; good && k < count; ++k)
      good = v[k].is_number() && v[k].get<double>() >= least && v[k].get<double>() <= most;
    if (!good) wrong(key, ", it must be a list of ", count, " numbers from ", least, " to ", most);
    values = v.get<std::vector<double>>();
  }
  void texts(const std::string& key, std::vector<std::string>& values) {
    if (!take(key, false)) return;
    const Json& v = j_.at(key);
    if (!v.is_array() || !std::ranges::all_of(v, [](const Json& t) { return t.is_string() && t != ""; }))
      wrong(key, ", it must be a list of texts in quotes");
    values = v.get<std::vector<std::string>>();
  }
  // A path, or a list of them, behind the folder of the file.
  void file(const std::string& key, std::string& path) {
    text(key, path);
    if (!path.empty()) path = beside(path);
  }
  void files(const std::string& key, std::vector<std::string>& paths, bool needed) {
    if (!take(key, needed)) return;
    const Json& v = j_.at(key);
    const Json list = v.is_string() ? Json::array({v}) : v;
    bool good = list.is_array() && !list.empty();
    for (const Json& p : list) good = good && p.is_string();
    if (!good) wrong(key, ", it must be a path in quotes, or a list of them");
    for (const Json& p : list) paths.push_back(beside(p.get<std::string>()));
  }
  // Nothing was written that nobody reads.
  void finish() const {
    for (const auto& [key, value] : j_.items()) {
      if (known_.contains(key)) continue;
      std::string all;
      for (const std::string& k : known_) all += (all.empty() ? "" : ", ") + k;
      fail("there is no ", name_, ".", printable(key, 100), did_you_mean(key, {known_.begin(), known_.end()}),
           "; here \"", name_, "\" has ", all);
    }
  }

 private:
  std::string beside(const std::string& path) const {
    return (std::filesystem::path(path_).parent_path() / path).string();
  }
  bool take(const std::string& key, bool needed) {
    known_.insert(key);
    if (j_.contains(key)) {
      if (decisive_ && !(name_ == "train" && key == "steps"))
        decisive_->push_back(str_cat(name_, ".", key, " = ", quoted(j_.at(key))));
      return true;
    }
    if (needed) fail(name_, ".", key, " is missing");
    return false;
  }
  const std::string& path_;
  std::string name_;
  Json j_ = Json::object();
  std::set<std::string> known_;
  std::vector<std::string>* decisive_;
};

// Is it one of torchvision's networks?
bool is_vision_model(const std::string& kind) { return std::ranges::count(vision_model_names(), kind) > 0; }

void read_model(Section s, ModelConfig& m) {
  std::vector<std::string> kinds = {"mlp", "vgg", "resnet", "llama"};
  kinds.insert(kinds.end(), vision_model_names().begin(), vision_model_names().end());
  s.one_of("kind", m.kind, kinds, true);
  if (m.kind == "mlp") s.wholes("hidden", m.hidden, 100);
  if (m.kind == "mlp" || m.kind == "vgg") s.number("dropout", m.dropout, 0, 0.99);
  if (m.kind == "vgg") m.depth = 3, m.width = 32;
  if (m.kind == "resnet") m.depth = 20, m.width = 16;
  if (m.kind == "vgg" || m.kind == "resnet") s.whole("depth", m.depth, 1), s.whole("width", m.width, 1);
  if (m.kind == "resnet" && (m.depth < 8 || m.depth % 6 != 2))
    s.fail("model.depth is ", m.depth, ", a ResNet for small pictures has 6 n + 2 layers: 8, 14, 20, 32, 44, 56, ...");
  if (m.kind == "vgg" && m.depth > 5) s.fail("model.depth is ", m.depth, ", a VGG has at most 5 blocks");
  if (is_vision_model(m.kind)) s.whole("width_divisor", m.width_divisor, 1);
  if (m.kind != "llama") {
    s.file("weights", m.weights), s.texts("reinitialize", m.reinitialize);
    if (m.weights.empty() && !m.reinitialize.empty())
      s.fail("model.reinitialize names layers that do not take their values from model.weights, which is missing");
  }
  if (m.kind == "llama") s.file("weights", m.weights);
  if (m.kind == "llama" && !m.weights.empty()) {
    s.whole("context", m.context, 1), s.whole("lora_rank", m.lora_rank, 1);
    s.number("lora_alpha", m.lora_alpha, 1e-6, 1e6), s.texts("lora_targets", m.lora_targets);
    if (m.lora_rank == 0 && (s.has("lora_alpha") || s.has("lora_targets")))
      s.fail("model.lora_alpha and model.lora_targets say how adapters are trained: model.lora_rank is missing");
  }
  if (m.kind == "llama" && m.weights.empty()) {
    s.whole("layers", m.layers, 1, true), s.whole("width", m.width, 2, true), s.whole("heads", m.heads, 1, true);
    m.kv_heads = m.heads, m.intermediate = (m.width * 8 / 3 + 31) / 32 * 32, m.tokenizer = "bpe";
    s.whole("kv_heads", m.kv_heads, 1), s.whole("intermediate", m.intermediate, 1);
    s.whole("context", m.context, 1, true), s.whole("vocabulary", m.vocabulary, 4, true);
    s.one_of("tokenizer", m.tokenizer, {"bpe", "char"});
    s.flag("tied", m.tied);
    if (m.width % m.heads != 0 || m.width / m.heads % 2 != 0)
      s.fail("model.heads is ", m.heads, ", which must divide model.width, ", m.width, ", into even parts");
    if (m.heads % m.kv_heads != 0)
      s.fail("model.kv_heads is ", m.kv_heads, ", which must divide model.heads, ", m.heads);
  }
  s.finish();
}

void read_samples(Section& s, const ModelConfig& m, DataConfig& d) {
  const bool known = d.format == "idx" || d.format.starts_with("cifar");
  if (d.format == "csv") s.text("label", d.label), s.flag("header", d.header);
  if (d.format == "npz") s.text("x", d.x), s.text("y", d.y);
  if (d.format == "idx") d.shape = {28, 28}, d.classes = 10;
  if (d.format == "cifar10") d.shape = {3, 32, 32}, d.classes = 10;
  if (d.format == "cifar100") d.shape = {3, 32, 32}, d.classes = 100;
  if (!d.format.starts_with("cifar")) {
    s.wholes("shape", d.shape, 3, !known);
    s.whole("classes", d.classes, 2, !known);
  }
  if (d.shape.empty()) s.fail("data.shape is empty, it must say how large a sample is");
  s.number("scale", d.scale, 1e-30, 1e30);
  if (m.kind != "mlp") s.flag("augment", d.augment);
  if (m.kind != "mlp" && d.shape.size() < 2)
    s.fail("data.shape must be [height, width] or [channels, height, width] for a ", m.kind);
  if ((is_vision_model(m.kind) || d.format == "images") && (d.shape.size() != 3 || d.shape[0] != 3))
    s.fail("data.shape must be [3, height, width] for ", d.format == "images" ? d.format : m.kind);
  if (is_vision_model(m.kind)) {
    const PictureOptions imagenet;
    d.mean.assign(imagenet.mean.begin(), imagenet.mean.end()), d.std.assign(imagenet.std.begin(), imagenet.std.end());
  }
  if (d.shape.size() > 1) {
    const std::size_t channels = d.shape.size() == 3 ? static_cast<std::size_t>(d.shape[0]) : 1;
    s.numbers("mean", d.mean, channels, -1e30, 1e30), s.numbers("std", d.std, channels, 1e-30, 1e30);
    if (d.mean.empty() != d.std.empty()) s.fail("data.mean and data.std are given together");
  }
  if (d.format == "images") {
    d.resize = std::max(d.shape[1], d.shape[2]) * 8 / 7;  // torchvision's 256 for 224
    s.whole("resize", d.resize, 1);
    if (d.train.size() != 1 || d.test.size() > 1)
      s.fail("data.train and data.test must be one folder each for images, with a folder in it for each class");
  }
  if (m.kind == "vgg" && std::min(d.shape.back(), d.shape[d.shape.size() - 2]) >> m.depth == 0)
    s.fail("model.depth is ", m.depth, ", which halves pictures of data.shape to nothing");
  if (d.format == "csv" && d.shape.size() != 1) s.fail("data.shape must be [features] for csv");
  if ((d.format == "idx" || d.format == "npy") && (d.train.size() != 2 || (!d.test.empty() && d.test.size() != 2)))
    s.fail("data.train and data.test must be two files for ", d.format, ": [\"x\", \"labels\"]");
  if ((d.format == "csv" || d.format == "npz" || d.format == "cifar100") && (d.train.size() != 1 || d.test.size() > 1))
    s.fail("data.train and data.test must be one file each for ", d.format);
}

void read_data(Section s, const ModelConfig& m, DataConfig& d) {
  const bool language = m.kind == "llama";
  if (language && m.weights.empty()) s.one_of("format", d.format, {"text", "stories"}, true);
  else if (language) s.one_of("format", d.format, {"text", "jsonl"}, true);
  else s.one_of("format", d.format, {"csv", "npy", "npz", "idx", "cifar10", "cifar100", "images"}, true);
  if (d.format != "stories") {
    s.files("train", d.train, true);
    s.files("test", d.test, false);
    if (d.test.empty()) s.number("held_out", d.held_out, 1e-6, 0.9);
  }
  if (d.format == "text") s.text("separator", d.separator);
  if (d.format == "jsonl") s.flag("packing", d.packing);
  if (!language) read_samples(s, m, d);
  s.finish();
}

void read_steps(Section s, StepsConfig& t) {
  s.whole("steps", t.steps, 1, true), s.whole("batch", t.batch, 1, true);
  s.one_of("optimizer", t.optimizer, {"sgd", "adam", "adamw", "lion", "muon"});
  if (t.optimizer == "sgd" || t.optimizer == "adam") t.weight_decay = 0;
  if (t.optimizer == "lion") t.lr = 1e-4, t.beta2 = 0.99;
  if (t.optimizer == "sgd") t.lr = 0.1, s.number("momentum", t.momentum, 0, 0.9999);
  else s.number("beta1", t.beta1, 0, 0.9999), s.number("beta2", t.beta2, 0, 0.999999);
  s.number("lr", t.lr, 0, 1e3), s.number("weight_decay", t.weight_decay, 0, 1e3);
  s.one_of("schedule", t.schedule, {"cosine", "linear", "constant"});
  if (t.schedule != "constant") s.number("final_lr", t.final_lr, 0, t.lr);
  s.whole("warmup", t.warmup, 0), s.number("clip", t.clip, 0, 1e9), s.whole("seed", t.seed, 0);
  if (t.warmup >= t.steps) s.fail("train.warmup is ", t.warmup, ", it must be less than train.steps, ", t.steps);
  s.finish();
}

void read_rest(const std::string& path, const Json& j, TrainConfig& c) {
  Section e(path, j, "evaluate", false, nullptr);
  c.evaluate_every = std::max<i64>(1, c.train.steps / 10);
  if (c.data.format == "stories") c.held_out_samples = 64;
  e.whole("every", c.evaluate_every, 1), e.whole("samples", c.held_out_samples, 0), e.whole("patience", c.patience, 0);
  if (c.data.format == "stories" && c.held_out_samples == 0) e.fail("evaluate.samples is 0, stories have no end");
  e.finish();
  Section s(path, j, "save", false, nullptr);
  c.save_every = c.evaluate_every;
  s.text("folder", c.folder), s.whole("every", c.save_every, 1);
  if (c.language()) s.one_of("weights", c.weights, {"f32", "f16", "bf16"});
  s.finish();
  Section l(path, j, "log", false, nullptr);
  c.log_every = std::max<i64>(1, c.train.steps / 200);
  l.whole("every", c.log_every, 1);
  l.finish();
}

TrainConfig parse(const std::string& text, const std::string& path) {
  Json j;
  try {
    j = Json::parse(text, nullptr, true, true);
  } catch (const Json::exception& e) {
    const std::string why = e.what();  // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    const std::size_t begin = why.find("] ") == why.npos ? 0 : why.find("] ") + 2;
    throw Error("config", str_cat(printable(path, 300), ": ", printable(why.substr(begin), 300)));
  }
  if (!j.is_object()) throw Error("config", str_cat(printable(path, 300), ": it must be an object, { ... }"));
  TrainConfig c;
  const std::filesystem::path file(path);
  c.name = file.stem().string();
  read_model(Section(path, j, "model", true, &c.decisive), c.model);
  read_data(Section(path, j, "data", true, &c.decisive), c.model, c.data);
  read_steps(Section(path, j, "train", true, &c.decisive), c.train);
  read_rest(path, j, c);
  c.folder = (file.parent_path() / (c.folder.empty() ? c.name + ".run" : c.folder)).string();
  const std::vector<std::string> sections{"model", "data", "train", "evaluate", "save", "log"};
  for (const auto& [key, value] : j.items())
    if (std::find(sections.begin(), sections.end(), key) == sections.end())
      throw Error("config", str_cat(printable(path, 300), ": there is no section \"", printable(key, 100), "\"",
                                    did_you_mean(key, sections),
                                    "; sections are model, data, train, evaluate, save and log"));
  return c;
}

}  // namespace

TrainConfig read_train_config(const std::string& path) { return parse(read_text_file(path, 1u << 20), path); }
TrainConfig story_config() { return parse(std::string(example_config("stories")), "stories.json"); }

}  // namespace lc::tool
