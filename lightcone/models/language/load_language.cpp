#include "lightcone/models/language/load_language.h"

#include <algorithm>
#include <iterator>

#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/expert_linear.h"
#include "lightcone/models/language/architectures/architectures.h"
#include "lightcone/models/language/gguf_layout.h"
#include "lightcone/models/language/language_net.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

struct Task {
  std::string_view suffix;
  LanguageHead head;
};
constexpr Task kTasks[] = {{"ForCausalLM", LanguageHead::Words},
                           {"LMHeadModel", LanguageHead::Words},
                           {"Model", LanguageHead::None},
                           {"TextModel", LanguageHead::None},
                           {"ForSequenceClassification", LanguageHead::Sequence},
                           {"TextForSequenceClassification", LanguageHead::Sequence},
                           {"ForTokenClassification", LanguageHead::Tokens},
                           {"ForQuestionAnswering", LanguageHead::Answer}};
constexpr std::string_view kPrefixes[] = {"transformer.", "model.decoder.", "model.", "gpt_neox.",
                                          "decoder.",     "backbone.",      "rwkv."};

// Sets the head by the class in `architectures`; a language model if the file names none.
void read_head(const ConfigFile& c, const LanguageArchitecture& a, LanguageConfig& l) {
  const std::vector<std::string> all = c.texts("architectures");
  l.architecture = all.empty() ? str_cat(a.class_name, "ForCausalLM") : all.front();
  std::vector<std::string> known;
  for (const Task& t : kTasks) {
    known.push_back(str_cat(a.class_name, t.suffix));
    if (l.architecture != known.back()) continue;
    l.top = t.head;
    // classifiers of whole texts have no bias, the others have one
    l.head_bias = l.top == LanguageHead::Tokens || l.top == LanguageHead::Answer;
    if (l.top == LanguageHead::Sequence || l.top == LanguageHead::Tokens) l.labels = c.labels();
    return;
  }
  c.fail("the architecture ", in_quotes(l.architecture), " is not known for model_type ", in_quotes(a.type),
         "; the nearest is ", nearest_name(l.architecture, {known.begin(), known.end()}));
}

void read_ids(const ConfigFile& c, LanguageConfig& l) {
  constexpr double kMostIds = 1e9;
  for (const double id : c.numbers("eos_token_id"))
    if (id >= 0 && id <= kMostIds) l.ends.push_back(static_cast<int>(id));
  if (const std::vector<double> p = c.numbers("pad_token_id"); !p.empty() && p.front() >= 0 && p.front() <= kMostIds)
    l.padding = static_cast<std::int64_t>(p.front());
}

void check(const ConfigFile& c, const LanguageConfig& l) {
  const auto& known = activation_names();
  for (const std::string& name :
       {l.network.activation, l.experts.network.activation, l.state_space ? l.state_space->activation : "silu"})
    if (std::ranges::find(known, name) == known.end())
      c.fail("the activation ", in_quotes(name), " is not known; the nearest is ", nearest_name(name, known));
  if (!(l.norm.eps > 0)) c.fail("the epsilon of the norms is ", l.norm.eps, ", and not above 0");
  c.lacks({"is_encoder_decoder", "add_cross_attention"});
  c.neutral({"pad_token_id", "tie_word_embeddings"});
}

// What stands on top has the same names in every architecture: the head for words, and the heads of classifiers.
constexpr WeightName kHeadNames[] = {
    {"lm_head", "head", true},
    {"score", "head", true},
    {"classifier", "head", true},
    {"qa_outputs", "head", true},
};

std::vector<WeightName> names_of(const LanguageArchitecture& a) {
  std::vector<WeightName> all(a.names.begin(), a.names.end());
  all.insert(all.end(), a.more.begin(), a.more.end());
  all.insert(all.end(), a.still_more.begin(), a.still_more.end());
  all.insert(all.end(), std::begin(kHeadNames), std::end(kHeadNames));
  return all;
}

void require_each_expert(const ConfigFile& c, const LanguageConfig& l, std::size_t tensors) {
  if (!l.experts.stacked && l.experts.count > static_cast<std::int64_t>(tensors))
    c.fail(l.experts.count, " experts, and ", tensors, " weights");
}

// Whether the file has one tensor for all experts of a layer depends on the version that wrote it.
void find_stacked_experts(const ConfigFile& c, LanguageConfig& l, const WeightTable& w, std::size_t tensors) {
  for (std::size_t i = 0; i < l.layers.size(); ++i) {
    if (!l.layers[i].experts) continue;
    l.experts.mxfp4 = w.has(str_cat("layers.", i, ".experts.gate_up_blocks"));
    l.experts.stacked |= l.experts.mxfp4 || w.has(str_cat("layers.", i, ".experts.gate_up"));
    if (l.experts.mxfp4 && (l.width % kMxfp4Block != 0 || l.experts.network.inner % kMxfp4Block != 0))
      c.fail("widths of ", l.width, " and ", l.experts.network.inner, " are not whole blocks of ", kMxfp4Block);
    require_each_expert(c, l, tensors);
    return;
  }
}

}  // namespace

void take_blocks(const LanguageConfig& c, const WeightTable& w) {
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    if (!c.layers[i].experts || !c.experts.mxfp4) continue;
    const auto take = [&](const char* part, std::int64_t out, std::int64_t in) {
      const std::string path = str_cat("layers.", i, ".experts.", part);
      const std::int64_t blocks = in / kMxfp4Block;
      w.take(path + "_blocks", {c.experts.count, out, blocks, kMxfp4Block / 2}, DType::U8);
      w.take(path + "_scales", {c.experts.count, out, blocks}, DType::U8);
    };
    take("gate_up", 2 * c.experts.network.inner, c.width);
    take("down", c.width, c.experts.network.inner);
  }
}

LanguageFile open_language(const Weights& w, const ConfigFile& config) {
  const std::string type = config.text("model_type");
  const LanguageArchitecture* a = language_architecture(type);
  if (!a)
    config.fail("model_type ", in_quotes(type), " is no language model that is known; the nearest is ",
                nearest_name(type, language_model_types()));
  LanguageConfig l;
  read_head(config, *a, l);
  read_ids(config, l);
  a->read(config, l);
  const std::string gguf = w.gguf() ? w.gguf()->text("general.architecture").value_or("") : "";
  if (w.gguf()) use_gguf_layout(w, gguf, l);
  check(config, l);
  config.require_all_known(type);
  const std::size_t tensors = w.tensors().size();
  if (l.layers.size() > tensors) config.fail(l.layers.size(), " layers, and ", tensors, " weights");
  if (w.gguf()) {
    require_each_expert(config, l, tensors);
    return {std::move(l), WeightTable(w, {}, gguf_names(w, gguf))};
  }
  WeightTable table(w, kPrefixes, names_of(*a));
  find_stacked_experts(config, l, table, tensors);
  return {std::move(l), std::move(table)};
}

LoadedModel load_language(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  LanguageFile file = open_language(w, config);
  const LanguageConfig& c = file.config;
  LoadedModel m(config.text("model_type"), file.weights);
  m.architecture = c.architecture, m.labels = c.labels, m.padding = c.padding.value_or(0);
  m.limits = {{"batch", o.batch}, {"length", c.length}};
  const LanguageNet& net = m.add(LanguageNet(c));
  take_blocks(c, m.weights);
  m.weights.require_all_used(str_cat("a ", c.architecture));
  const Shape shape{Dim::symbol("batch", 1, o.batch), Dim::symbol("length", 1, c.length)};
  for (const char* name : {"input_ids", "attention_mask"}) m.inputs[name] = m.graph().input(name, shape, DType::I64);
  for (const auto& [name, value] : net(m.inputs["input_ids"], m.inputs["attention_mask"])) m.give(name, value);
  m.retrieve(o);
  return m;
}

}  // namespace lc
