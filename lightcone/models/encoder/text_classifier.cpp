#include "lightcone/models/encoder/text_classifier.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/llm/adapters.h"
#include "lightcone/llm/checkpoint.h"
#include "lightcone/models/encoder/encoder_names.h"
#include "lightcone/models/files/fine_tuning.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

// The classes in the order of a file's head, or nothing if the head is one for other classes.
std::vector<std::string> in_order_of(const EncoderConfig& file, std::span<const std::string> classes) {
  if (file.head != EncoderHead::Sequence) return {};
  return classes_in_order_of(file.labels, classes);
}

// The last parts of the paths, in this library, of the layers that targets of peft's name.
std::vector<std::string> layers_of(EncoderKind kind, const std::vector<std::string>& targets) {
  constexpr std::string_view kLayers = "layers.#";
  std::vector<std::string> all;
  for (const std::string& target : targets) {
    std::vector<std::string_view> modules;
    const std::size_t before = all.size();
    for (const WeightName& row : encoder_weight_names(kind)) {
      if (!row.ours.starts_with(kLayers) || row.ours.ends_with("_norm")) continue;
      modules.push_back(row.theirs.substr(row.theirs.rfind('#') + 2));
      if (names_module(target, row.theirs)) all.emplace_back(row.ours.substr(row.ours.rfind('#') + 2));
    }
    if (all.size() == before)
      throw Error("TextClassifier", str_cat("no layer is called ", in_quotes(target), " that adapters could be for; ",
                                            names_near(target, modules)));
  }
  std::ranges::sort(all);
  const auto same = std::ranges::unique(all);
  all.erase(same.begin(), same.end());
  return all;
}

}  // namespace

TextClassifier TextClassifier::of(const Weights& w, std::span<const std::string> classes,
                                  const TextClassifierOptions& o) {
  if (classes.size() < 2)
    throw Error("TextClassifier", str_cat(classes.size(), " classes: there is nothing to tell apart"));
  const ConfigFile file(w, o.ignore);
  EncoderConfig c = EncoderConfig::from(file);
  WeightTable table(w, encoder_prefixes(), encoder_weight_names(c.kind));
  c.fit(file, w, table);
  std::vector<std::string> order = in_order_of(c, classes);
  const bool keeps = !order.empty();
  if (!keeps) order.assign(classes.begin(), classes.end());
  c.become_classifier(file, keeps ? c.labels : order);
  if (o.dropout) c.dropout = {*o.dropout, *o.dropout, *o.dropout};
  TextClassifier m(c, table);
  m.range_ = file.number("initializer_range", 0.02);
  m.classes_ = std::move(order);
  if (c.pooler && !table.has("pooler.weight")) m.new_layers_.emplace_back("pooler");
  if (!keeps && c.top.dense) m.new_layers_.emplace_back("head.dense");
  if (!keeps && c.top.norm) m.new_layers_.emplace_back("head.norm");
  if (!keeps) m.new_layers_.emplace_back("head.out");
  m.check_weights();
  if (o.lora_rank == 0) return m;
  std::vector<std::string> targets = o.lora_targets;
  if (targets.empty()) targets = default_lora_targets(c.kind);
  m.lora_ = nn::LoraOptions{o.lora_rank, o.lora_alpha, layers_of(c.kind, targets)};
  return m;
}

// Lists the parameters, and compares what is not new with the file.
void TextClassifier::check_weights() {
  Graph g;
  const nn::Model<Encoder> model(g, encoder_);
  const nn::StorageOf in_file = weights_.storage();
  for (const nn::Entry& e : model.entries()) {
    const Shape shape = e.tensor.shape();
    if (!is_new(e.name.substr(0, e.name.rfind('.')))) in_file(e.name, shape);
    std::vector<std::int64_t> extents;
    for (const Dim& d : shape) extents.push_back(*d.constant());
    const std::string name = classifier_name(config().kind, e.name);
    parameters_.push_back({name, extents});
    paths_[name] = e.name;
  }
  weights_.require_all_used(str_cat("a ", config().architecture));
}

bool TextClassifier::is_new(std::string_view layer) const { return std::ranges::count(new_layers_, layer) > 0; }

void TextClassifier::visit(nn::Visitor& v) {
  const bool new_pooler = is_new("pooler");
  {
    std::optional<nn::Visitor::ScopedLora> adapting;
    if (lora_) adapting.emplace(v, *lora_);
    encoder_.visit_body(v);
    if (!new_pooler) encoder_.visit_pooler(v);
    if (adapting) adapting->require_all();
  }
  const nn::Init normal = [std = range_](const nn::init::Extents& shape, const nn::init::Source& from) {
    return nn::init::normal(shape, from, 0, std);
  };
  const nn::Visitor::ScopedInit first(v, normal, nn::constant_init(0));
  if (new_pooler) encoder_.visit_pooler(v);
  encoder_.visit_head(v);
}

void save_text_classifier(const TextClassifier& m, const Weights& base, const std::string& folder,
                          const llm::ParameterValues& values, DType type,
                          const std::map<std::string, std::string>& metadata) {
  const auto of = [&](const std::string& name) { return values(m.path_of(name)); };
  llm::save_classifier(base, folder, {m.config().architecture, m.labels()}, m.parameters(), of, type, metadata);
}

void save_text_classifier_adapters(const TextClassifier& m, const std::string& folder,
                                   std::span<const nn::Adapter> adapters, const llm::ParameterValues& values,
                                   const std::string& path) {
  std::vector<nn::Adapter> named(adapters.begin(), adapters.end());
  for (nn::Adapter& a : named) a.weight = classifier_name(m.config().kind, a.weight);
  llm::PeftTask task{.type = "SEQ_CLS", .trained = {}};
  for (const llm::ParameterInfo& p : m.parameters()) {
    const std::string& ours = m.path_of(p.path);
    const bool trained =
        ours.starts_with("head.") || std::ranges::count(m.new_layers(), ours.substr(0, ours.find('.')));
    // peft finds a module by the end of its name, and both layers of RoBERTa's head within "classifier"
    const std::string module = p.path.starts_with("classifier.") ? "classifier" : p.path.substr(0, p.path.rfind('.'));
    if (trained && !std::ranges::count(task.trained, module)) task.trained.push_back(module);
  }
  const auto of = [&](const std::string& name) {
    const auto ours = std::ranges::find(m.parameters(), name, &llm::ParameterInfo::path);
    return values(ours == m.parameters().end() ? name : m.path_of(name));
  };
  llm::save_adapters(folder, m.parameters(), named, of, path, task);
}

}  // namespace lc
