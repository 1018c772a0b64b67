#include "config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/models/vision/vision.h"
#include "section.h"

namespace lc::tool {
namespace {

// Returns true for the name of a network of torchvision.
bool is_vision_model(const std::string& kind) { return std::ranges::count(vision_model_names(), kind) > 0; }

void read_lora(Section& s, ModelConfig& m) {
  s.whole("lora_rank", m.lora_rank, 1);
  s.number("lora_alpha", m.lora_alpha, 1e-6, 1e6), s.texts("lora_targets", m.lora_targets);
  if (m.lora_rank == 0 && (s.has("lora_alpha") || s.has("lora_targets")))
    s.fail("model.lora_alpha and model.lora_targets say how adapters are trained: model.lora_rank is missing");
  if (s.has("lora_targets") && m.lora_targets.empty()) s.fail("model.lora_targets is empty: no layer gets an adapter");
}

void read_published(Section& s, ModelConfig& m, const char* what) {
  s.file("weights", m.weights);
  if (m.weights.empty()) s.fail("model.weights is missing: ", what, " begins from a folder of Hugging Face's");
  read_lora(s, m);
}

void read_encoder(Section& s, ModelConfig& m) {
  read_published(s, m, "an encoder");
  s.whole("length", m.length, 1);
  double dropout = -1;
  s.number("dropout", dropout, 0, 0.99);
  if (s.has("dropout")) m.own_dropout = dropout;
}

}  // namespace

void read_model(Section s, ModelConfig& m) {
  std::vector<std::string> kinds = {"mlp", "vgg", "resnet", "llama", "encoder", "vision"};
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
  const bool encoder = m.kind == "encoder", vision = m.kind == "vision";
  if (encoder) read_encoder(s, m);
  if (vision) read_published(s, m, "a published network of pictures");
  if (m.kind != "llama" && !encoder && !vision) {
    s.file("weights", m.weights), s.texts("reinitialize", m.reinitialize);
    if (m.weights.empty() && !m.reinitialize.empty())
      s.fail("model.reinitialize names layers that do not take their values from model.weights, which is missing");
  }
  if (m.kind == "llama") s.file("weights", m.weights);
  if (m.kind == "llama" && !m.weights.empty()) {
    m.lora_targets = {"q_proj", "v_proj"};
    s.whole("context", m.context, 1);
    read_lora(s, m);
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

namespace {

void read_table_keys(Section& s, DataConfig& d) {
  s.text("label", d.label), s.flag("header", d.header);
  if (d.header) s.texts("features", d.features);
  if (std::ranges::count(d.features, d.label)) s.fail("data.features names the label, ", in_quotes(d.label));
  s.word_or_number("missing", d.missing, d.missing_number, {"error", "skip", "mean"});
  s.texts("na_values", d.na_values);
}

void read_unreadable(Section& s, DataConfig& d) {
  std::string unreadable = "error";
  s.one_of("unreadable", unreadable, {"error", "skip"});
  d.skip_unreadable = unreadable == "skip";
  if (d.train.size() != 1 || d.test.size() > 1)
    s.fail("data.train and data.test must be one folder each for images, with a folder in it for each class");
}

void read_samples(Section& s, const ModelConfig& m, DataConfig& d) {
  const bool known = d.format == "idx" || d.format.starts_with("cifar");
  if (d.format == "csv") read_table_keys(s, d);
  if (d.format == "npz") s.text("x", d.x), s.text("y", d.y);
  if (d.format == "csv" || d.format == "npy" || d.format == "npz") {
    std::string task = "classification";
    s.one_of("task", task, {"classification", "regression"});
    d.regression = task == "regression";
  }
  if (d.format == "idx") d.classes = 10;
  if (d.format == "cifar10") d.shape = {3, 32, 32}, d.classes = 10;
  if (d.format == "cifar100") d.shape = {3, 32, 32}, d.classes = 100;
  if (!d.format.starts_with("cifar")) {
    d.shape.assign(d.features.empty() ? 0 : 1, static_cast<i64>(d.features.size()));
    if (known) d.shape = {28, 28};
    s.wholes("shape", d.shape, 3, !known && d.features.empty());
    if (d.regression) d.classes = 1;
    else s.whole("classes", d.classes, 2, !known);
  }
  if (d.shape.empty()) s.fail("data.shape is empty, it must say how large a sample is");
  s.number("scale", d.scale, 1e-30, 1e30);
  if (d.rows()) s.flag("standardize", d.standardize);
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
    read_unreadable(s, d);
  }
  if (m.kind == "vgg" && std::min(d.shape.back(), d.shape[d.shape.size() - 2]) >> m.depth == 0)
    s.fail("model.depth is ", m.depth, ", which halves pictures of data.shape to nothing");
  if (d.format == "csv" && (!d.rows() || (!d.features.empty() && d.shape[0] != std::ssize(d.features))))
    s.fail("data.shape must be [features] for csv",
           d.features.empty() ? "" : str_cat(", and data.features names ", d.features.size(), " columns"));
  if ((d.format == "idx" || d.format == "npy") && (d.train.size() != 2 || (!d.test.empty() && d.test.size() != 2)))
    s.fail("data.train and data.test must be two files for ", d.format, ": [\"x\", \"labels\"]");
  if ((d.format == "csv" || d.format == "npz" || d.format == "cifar100") && (d.train.size() != 1 || d.test.size() > 1))
    s.fail("data.train and data.test must be one file each for ", d.format);
}

void read_labelled_texts(Section& s, DataConfig& d) {
  s.text("text", d.text), s.text("text_pair", d.text_pair), s.text("label", d.label);
  for (const std::string& column : {d.text, d.label})
    if (column.empty()) s.fail("data.text and data.label must name a column each");
  if (d.text == d.label || d.text == d.text_pair || d.label == d.text_pair)
    s.fail("data.text, data.text_pair and data.label must name different columns");
  if (d.train.size() != 1 || d.test.size() > 1) s.fail("data.train and data.test must be one file each for an encoder");
}

void read_data(Section s, const ModelConfig& m, DataConfig& d) {
  const bool language = m.kind == "llama", encoder = m.kind == "encoder", vision = m.kind == "vision";
  if (language && m.weights.empty()) s.one_of("format", d.format, {"text", "stories"}, true);
  else if (language) s.one_of("format", d.format, {"text", "jsonl"}, true);
  else if (encoder) s.one_of("format", d.format, {"csv", "jsonl"}, true);
  else if (vision) s.one_of("format", d.format, {"images"}, true);
  else s.one_of("format", d.format, {"csv", "npy", "npz", "idx", "cifar10", "cifar100", "images"}, true);
  if (d.format != "stories") {
    s.files("train", d.train, true);
    s.files("test", d.test, false);
    if (d.test.empty()) s.number("held_out", d.held_out, 1e-6, 0.9);
  }
  if (d.format == "text") s.text("separator", d.separator);
  if (language && d.format == "jsonl") s.flag("packing", d.packing);
  if (encoder) read_labelled_texts(s, d);
  else if (vision) read_unreadable(s, d), s.flag("augment", d.augment);
  else if (!language) read_samples(s, m, d);
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
  if (c.published()) c.weights = "f32";
  if (c.language() || c.published()) s.one_of("weights", c.weights, {"f32", "f16", "bf16"});
  s.finish();
  Section l(path, j, "log", false, nullptr);
  c.log_every = std::max<i64>(1, c.train.steps / 200);
  l.whole("every", c.log_every, 1);
  l.finish();
}

// These keys do not decide about what is learned: a run may go on with other ranks.
void read_ranks(const std::string& path, const Json& j, TrainConfig& c) {
  Section m(path, j, "mesh", false, nullptr);
  std::vector<MeshAxis> axes;
  for (const char* name : {"data", "model"}) {
    i64 size = 1;
    m.whole(name, size, 1);
    if (size > 1 << 20) m.wrong(name, ", more than there can be ranks");
    if (m.has(name)) axes.push_back({name, static_cast<int>(size)});
  }
  m.finish();
  c.ranks.mesh = Mesh(std::move(axes));
  Section d(path, j, "distributed", false, nullptr);
  d.one_of("shard", c.ranks.shard, {"none", "optimizer", "full"});
  d.number("timeout", c.ranks.timeout_s, 0.1, 1e6);
  d.finish();
  if (c.train.batch % c.ranks.data() != 0)
    m.fail("train.batch is ", c.train.batch, ", which mesh.data = ", c.ranks.data(), " must divide");
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
  read_ranks(path, j, c);
  c.folder = (file.parent_path() / (c.folder.empty() ? c.name + ".run" : c.folder)).string();
  const std::vector<std::string> sections{"model", "data", "train", "evaluate", "save", "log", "mesh", "distributed"};
  for (const auto& [key, value] : j.items())
    if (std::find(sections.begin(), sections.end(), key) == sections.end())
      throw Error("config", str_cat(printable(path, 300), ": there is no section \"", printable(key, 100), "\"",
                                    did_you_mean(key, sections),
                                    "; sections are model, data, train, evaluate, save, log, mesh and distributed"));
  return c;
}

}  // namespace

TrainConfig read_train_config(const std::string& path) { return parse(read_text_file(path, 1u << 20), path); }
TrainConfig story_config() { return parse(std::string(example_config("stories")), "stories.json"); }

}  // namespace lc::tool
