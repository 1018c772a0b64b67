#include "lightcone/models/classify/picture_classifier.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/llm/adapters.h"
#include "lightcone/llm/checkpoint.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/fine_tuning.h"
#include "lightcone/models/load/load_model.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

using Width = std::int64_t (*)(const ConfigFile&);
std::int64_t hidden(const ConfigFile& c) { return c.size("hidden_size", 768); }
std::int64_t twice_hidden(const ConfigFile& c) { return 2 * hidden(c); }
std::int64_t last_hidden(const ConfigFile& c) {
  const std::vector<std::int64_t> all = c.sizes("hidden_sizes");
  return all.empty() ? 0 : all.back();
}
std::int64_t swin_width(const ConfigFile& c) {
  const auto stages = std::ssize(c.sizes("depths"));
  return c.size("embed_dim", 96) << std::clamp<std::int64_t>(stages == 0 ? 3 : stages - 1, 0, 16);
}
std::int64_t hidden_dim(const ConfigFile& c) { return c.size("hidden_dim", 2560); }

// A family whose models can be classifiers: its class, what stands before the names of the body, and the head's name.
struct Family {
  std::string_view type, class_name, prefix, head;
  Width width;  // the head reads so many numbers; 0: config.json does not say
};
constexpr Family kFamilies[] = {
    {"vit", "ViTForImageClassification", "vit.", "classifier", hidden},
    {"deit", "DeiTForImageClassification", "deit.", "classifier", hidden},
    {"dinov2", "Dinov2ForImageClassification", "dinov2.", "classifier", twice_hidden},
    {"dinov2_with_registers", "Dinov2WithRegistersForImageClassification", "dinov2_with_registers.", "classifier",
     twice_hidden},
    {"swin", "SwinForImageClassification", "swin.", "classifier", swin_width},
    {"segformer", "SegformerForImageClassification", "segformer.", "classifier", last_hidden},
    {"convnext", "ConvNextForImageClassification", "convnext.", "classifier", last_hidden},
    {"convnextv2", "ConvNextV2ForImageClassification", "convnextv2.", "classifier", last_hidden},
    {"resnet", "ResNetForImageClassification", "resnet.", "classifier.1", last_hidden},
    {"regnet", "RegNetForImageClassification", "regnet.", "classifier.1", last_hidden},
    {"efficientnet", "EfficientNetForImageClassification", "efficientnet.", "classifier", hidden_dim},
};

const Family& family_of(const ConfigFile& file) {
  const std::string type = file.text("model_type");
  std::vector<std::string> known;
  for (const Family& f : kFamilies) {
    if (f.type == type) return f;
    known.emplace_back(f.type);
  }
  file.fail("a model of type ", in_quotes(type), " is no classifier of pictures that can go on learning; those are ",
            listed(known));
}

// The width of what the head of a file reads.
std::int64_t head_width(const ConfigFile& file, const Family& family, const StoredTensor* head) {
  const std::int64_t width = head && head->shape.size() == 2 ? head->shape[1] : family.width(file);
  if (constexpr std::int64_t kMost = 1 << 20; width < 1 || width > kMost)
    file.fail("config.json does not say how wide the input of a classifier is");
  return width;
}

// The weights that have to be added so that everything is f32, and a new head.
std::map<std::string, NewTensor> added_weights(const Weights& w, const std::string& head, bool keeps) {
  std::map<std::string, NewTensor> all;
  for (const auto& [name, t] : w.tensors()) {
    const bool whole = t.dtype && !t.quant && !is_float(*t.dtype), of_head = name.starts_with(head + ".");
    if (t.dtype == DType::F32 || whole || (of_head && !keeps)) continue;
    all[name] = {t.shape, Weights::read(t)};
  }
  return all;
}

}  // namespace

PictureClassifier PictureClassifier::of(const Weights& w, std::span<const std::string> classes,
                                        const PictureClassifierOptions& o) {
  if (classes.size() < 2)
    throw Error("PictureClassifier", str_cat(classes.size(), " classes: there is nothing to tell apart"));
  const ConfigFile file(w, o.ignore);
  const Family& family = family_of(file);
  const std::string head(family.head);
  const StoredTensor* old = w.find(head + ".weight");
  std::vector<std::string> order, labels(classes.begin(), classes.end());
  if (old && !old->shape.empty() && old->shape[0] == std::ssize(classes))
    order = classes_in_order_of(file.labels(), classes);
  const bool keeps = !order.empty();
  std::map<std::string, NewTensor> tensors = added_weights(w, head, keeps);
  if (keeps) {
    labels = file.labels();
  } else {
    const std::int64_t count = std::ssize(classes), width = head_width(file, family, old);
    const nn::init::Source from{.seed = o.seed, .parameter = head + ".weight"};
    tensors[head + ".weight"] = {{count, width},
                                 nn::init::normal({count, width}, from, 0, file.number("initializer_range", 0.02))};
    tensors[head + ".bias"] = {{count}, std::vector<float>(classes.size())};
  }
  const Weights whole =
      w.with(llm::classifier_config(w.config_json(), {std::string(family.class_name), labels}), std::move(tensors));
  auto model =
      std::make_shared<const LoadedModel>(load_model(whole, {.ignore = o.ignore,
                                                             .batch = o.batch,
                                                             .fixed_batch = true,
                                                             .outputs = std::vector<std::string>{},
                                                             .height = o.height,
                                                             .width = o.width,
                                                             .interpolate_pos_encoding = o.interpolate_pos_encoding}));
  PictureClassifier m(whole, std::move(model));
  m.head_ = head, m.new_head_ = !keeps;
  m.classes_ = keeps ? std::move(order) : std::vector<std::string>(classes.begin(), classes.end());
  m.name_parameters(family.prefix);
  if (o.lora_rank > 0) m.lora_ = nn::LoraOptions{o.lora_rank, o.lora_alpha, m.layers_of(o)};
  return m;
}

void PictureClassifier::name_parameters(std::string_view prefix) {
  for (const LoadedModule::Entry& e : body_.entries()) {
    std::string name = name_in_file(e.name);
    if (!name.starts_with(head_ + ".") && !name.starts_with(prefix)) name = std::string(prefix) + name;
    parameters_.push_back({name, e.shape});
    paths_[name] = e.name, names_[e.name] = name;
  }
}

bool PictureClassifier::of_head(std::string_view path) const {
  return names_.at(std::string(path)).starts_with(head_ + ".");
}

// The paths of the layers that targets of peft's name.
std::vector<std::string> PictureClassifier::layers_of(const PictureClassifierOptions& o) const {
  constexpr std::string_view kWeight = ".weight";
  std::vector<std::pair<std::string_view, std::string>> matrices;  // names and paths of layers
  for (const llm::ParameterInfo& p : parameters_) {
    const std::string& path = paths_.at(p.path);
    if (p.shape.size() != 2 || !p.path.ends_with(kWeight) || of_head(path)) continue;
    matrices.emplace_back(std::string_view(p.path).substr(0, p.path.size() - kWeight.size()),
                          path.substr(0, path.size() - kWeight.size()));
  }
  std::vector<std::string> targets = o.lora_targets, all;
  if (targets.empty())
    for (const std::string_view usual : {"query", "value", "q_proj", "v_proj", "pwconv1", "pwconv2"})
      if (std::ranges::any_of(matrices, [&](const auto& m) { return names_module(usual, m.first); }))
        targets.emplace_back(usual);
  if (targets.empty())
    throw Error("PictureClassifier", str_cat("a ", architecture(),
                                             " has no layers with matrices that adapters are "
                                             "usually for: name some as targets, or train it "
                                             "whole"));
  for (const std::string& target : targets) {
    const std::size_t before = all.size();
    for (const auto& [name, path] : matrices)
      if (names_module(target, name) && !std::ranges::count(all, path)) all.push_back(path);
    if (all.size() > before) continue;
    std::vector<std::string_view> names;
    for (const auto& [name, path] : matrices) names.push_back(name.substr(name.rfind('.') + 1));
    throw Error("PictureClassifier", str_cat("no layer with a matrix is called ", in_quotes(target),
                                             " that adapters could be for; ", names_near(target, names)));
  }
  return all;
}

void PictureClassifier::visit(nn::Visitor& v) {
  {
    std::optional<nn::Visitor::ScopedLora> adapting;
    if (lora_) adapting.emplace(v, *lora_);
    body_.visit(v, [&](std::string_view path) { return !of_head(path); });
    if (adapting) adapting->require_all();
  }
  body_.visit(v, [&](std::string_view path) { return of_head(path); });
}

void save_picture_classifier(const PictureClassifier& m, const Weights& base, const std::string& folder,
                             const llm::ParameterValues& values, DType type) {
  const auto of = [&](const std::string& name) { return values(m.path_of(name)); };
  llm::save_classifier(base, folder, {m.architecture(), m.labels()}, m.parameters(), of, type);
}

void save_picture_classifier_adapters(const PictureClassifier& m, const std::string& folder,
                                      std::span<const nn::Adapter> adapters, const llm::ParameterValues& values,
                                      const std::string& path) {
  std::vector<nn::Adapter> named(adapters.begin(), adapters.end());
  for (nn::Adapter& a : named) a.weight = m.name_of(a.weight);
  const auto of = [&](const std::string& name) {
    const auto own = std::ranges::find(m.parameters(), name, &llm::ParameterInfo::path);
    return values(own == m.parameters().end() ? name : m.path_of(name));
  };
  llm::save_adapters(folder, m.parameters(), named, of, path, {.type = "", .trained = {m.head()}});
}

}  // namespace lc
