#include "lightcone/models/encoder/encoder_config.h"

#include <algorithm>
#include <vector>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/encoder/encoder_kinds.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

struct Family {
  std::string_view type, class_name;
  EncoderKind kind;
  void (*read)(const ConfigFile& c, EncoderConfig& e);
};
constexpr Family kFamilies[] = {{"bert", "Bert", EncoderKind::Bert, read_bert},
                                {"roberta", "Roberta", EncoderKind::Roberta, read_bert},
                                {"xlm-roberta", "XLMRoberta", EncoderKind::Roberta, read_bert},
                                {"camembert", "Camembert", EncoderKind::Roberta, read_bert},
                                {"distilbert", "DistilBert", EncoderKind::DistilBert, read_distilbert},
                                {"mpnet", "MPNet", EncoderKind::MPNet, read_bert},
                                {"electra", "Electra", EncoderKind::Electra, read_bert},
                                {"albert", "Albert", EncoderKind::Albert, read_bert},
                                {"deberta-v2", "DebertaV2", EncoderKind::Deberta, read_deberta},
                                {"modernbert", "ModernBert", EncoderKind::ModernBert, read_modernbert},
                                {"nomic_bert", "NomicBert", EncoderKind::NomicBert, read_nomic_bert}};

struct Task {
  std::string_view suffix;
  EncoderHead head;
};
constexpr Task kTasks[] = {{"Model", EncoderHead::None},
                           {"ForSequenceClassification", EncoderHead::Sequence},
                           {"ForTokenClassification", EncoderHead::Tokens},
                           {"ForQuestionAnswering", EncoderHead::Answer},
                           {"ForMaskedLM", EncoderHead::MaskedLM},
                           {"ForMultipleChoice", EncoderHead::Choice},
                           {"ForPreTraining", EncoderHead::PreTraining},
                           {"ForNextSentencePrediction", EncoderHead::NextSentence}};

bool has_head(EncoderKind kind, EncoderHead head) {
  using enum EncoderKind;
  if (head == EncoderHead::PreTraining) return kind == Bert || kind == Albert || kind == Electra;
  if (head == EncoderHead::NextSentence) return kind == Bert;
  return head != EncoderHead::Choice || kind != NomicBert;
}

const Family& family_of(const ConfigFile& c) {
  const std::string type = c.text("model_type");
  for (const Family& f : kFamilies)
    if (f.type == type) return f;
  c.fail("model_type ", in_quotes(type), " is no encoder that is known");
}

// The head by the class in `architectures`; the bare encoder if the file names none.
EncoderHead head_of(const ConfigFile& c, const Family& f, std::string& architecture) {
  const std::vector<std::string> all = c.texts("architectures");
  architecture = all.empty() ? str_cat(f.class_name, "Model") : all.front();
  std::vector<std::string> known;
  for (const Task& t : kTasks) {
    if (!has_head(f.kind, t.head)) continue;
    known.push_back(str_cat(f.class_name, t.suffix));
    if (architecture != known.back()) continue;
    const bool discriminates = f.kind == EncoderKind::Electra && t.head == EncoderHead::PreTraining;
    return discriminates ? EncoderHead::Replaced : t.head;
  }
  c.fail("the architecture ", in_quotes(architecture), " is not known for model_type ", in_quotes(f.type),
         "; the nearest is ", nearest_name(architecture, {known.begin(), known.end()}));
}

// The layers of a classifier of texts, or of multiple choice.
EncoderTop top_of_texts(const EncoderConfig& e) {
  using enum EncoderKind;
  const bool choice = e.head == EncoderHead::Choice;
  switch (e.kind) {
    case Roberta:
    case MPNet:
      if (choice) break;
      return {.pool = EncoderPool::First, .dense = true, .activation = "tanh", .drop_first = true};
    case DistilBert: return {.pool = EncoderPool::First, .dense = true, .activation = "relu"};
    case Electra: return {.pool = EncoderPool::First, .dense = true, .activation = "gelu", .drop_first = !choice};
    case Deberta: return {.pool = EncoderPool::First, .dense = true, .activation = e.head_activation};
    case ModernBert:
      return {.pool = e.mean_pool ? EncoderPool::Mean : EncoderPool::First,
              .dense = true,
              .dense_bias = e.head_bias,
              .norm = true,
              .activation = e.head_activation};
    case Bert:
    case Albert:
    case NomicBert: break;
  }
  return {.pool = EncoderPool::Pooled};
}

void check(const ConfigFile& c, const EncoderConfig& e) {
  if (e.heads > e.width || e.width % e.heads != 0)
    c.fail(e.heads, " attention heads do not divide a width of ", e.width);
  if (!(e.eps > 0)) c.fail("layer_norm_eps is ", e.eps, ", and not above 0");
  const auto& known = activation_names();
  for (const std::string& name : {e.activation, e.top.activation})
    if (!name.empty() && std::ranges::find(known, name) == known.end())
      c.fail("the activation ", in_quotes(name), " is not known; the nearest is ", nearest_name(name, known));
}

}  // namespace

double share_of(const ConfigFile& c, std::string_view key, double otherwise) {
  const double p = c.number(key, otherwise);
  if (!(p >= 0 && p < 1)) c.fail(key, " is ", p, ", and not from 0 to below 1");
  return p;
}

void make_layers(const ConfigFile& c, EncoderConfig& e, std::int64_t count) {
  constexpr std::int64_t kMostLayers = 1 << 14;
  if (count > kMostLayers) c.fail(count, " layers are more than the ", kMostLayers, " that are supported");
  e.layers.resize(static_cast<std::size_t>(count));
}

void EncoderConfig::choose_top() {
  const bool modern = kind == EncoderKind::ModernBert;
  switch (head) {
    case EncoderHead::MaskedLM:
    case EncoderHead::PreTraining: {
      const bool plain = kind == EncoderKind::Roberta || kind == EncoderKind::MPNet || kind == EncoderKind::Electra;
      top = {.dense = true, .norm = true, .activation = plain ? "gelu" : activation};
      if (modern) top.dense_bias = head_bias, top.activation = head_activation;
      break;
    }
    case EncoderHead::Replaced: top = {.dense = true, .activation = activation}; break;
    case EncoderHead::Sequence:
    case EncoderHead::Choice: top = top_of_texts(*this); break;
    case EncoderHead::Tokens:
    case EncoderHead::Answer:
      top = {};
      if (modern) top = {.dense = true, .dense_bias = head_bias, .norm = true, .activation = head_activation};
      break;
    case EncoderHead::None:
    case EncoderHead::NextSentence: top = {}; break;
  }
}

EncoderConfig EncoderConfig::from(const ConfigFile& c) {
  const Family& family = family_of(c);
  EncoderConfig e;
  e.kind = family.kind;
  e.head = head_of(c, family, e.architecture);
  e.vocab = c.size("vocab_size");
  family.read(c, e);
  e.tied = c.flag("tie_word_embeddings", true);
  c.lacks({"pruned_heads", "is_encoder_decoder"});
  c.neutral({"pad_token_id"});
  if (e.head == EncoderHead::Sequence || e.head == EncoderHead::Tokens) e.labels = c.labels();
  e.choose_top();
  check(c, e);
  c.require_all_known(family.type);
  return e;
}

void EncoderConfig::fit(const ConfigFile& c, const Weights& w, const WeightTable& table) {
  const auto weights = std::ssize(w.tensors());
  const std::int64_t stored = groups > 0 ? groups * group_layers : std::ssize(layers);
  if (stored > weights) c.fail(stored, " layers, and ", weights, " weights");
  pooler = needs_pooler() || table.has("pooler.weight");
  joined = joined || table.has("layers.0.query_key_value.weight");
}

void EncoderConfig::become_classifier(const ConfigFile& c, std::vector<std::string> names) {
  head = EncoderHead::Sequence, labels = std::move(names);
  choose_top();
  pooler = needs_pooler();
  architecture = str_cat(family_of(c).class_name, "ForSequenceClassification");
}

}  // namespace lc
