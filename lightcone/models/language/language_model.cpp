#include "lightcone/models/language/language_model.h"

#include <algorithm>

#include "lightcone/llm/model_tokenizer.h"
#include "lightcone/llm/ranks.h"
#include "lightcone/models/files/scaled_weights.h"
#include "lightcone/models/gguf/gguf_config.h"
#include "lightcone/models/language/language_net.h"
#include "lightcone/models/language/load_language.h"
#include "lightcone/runtime/default_compiler.h"

namespace lc {
namespace {

// A decoder rotates by the frequencies of its context from the first token on, whatever the length of the text.
void fix_frequencies(LanguageConfig& c, std::int64_t context) {
  for (RopeConfig& r : c.ropes) {
    if (!r.long_frequencies.empty() && context > r.original) r.frequencies = r.long_frequencies;
    r.long_frequencies.clear();
  }
}

// The bytes that a token reads: all weights, of experts those of the chosen ones, and of the table of tokens one row
// unless it is the head, too.
std::size_t bytes_read(const LanguageConfig& c, const Graph& g, const WeightTable& weights, const llm::RankPart& mine) {
  double all = 0;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!g[id].parameter) continue;
    const StoredTensor* t = weights.find(g[id].name);
    const bool expert = g[id].name.find(".experts.") != std::string::npos &&
                        g[id].name.find(".shared") == std::string::npos && !g[id].name.ends_with("router.weight");
    if (!t || (g[id].name == "tokens.weight" && !c.tied)) continue;
    const double part = expert ? static_cast<double>(c.experts.chosen) / static_cast<double>(c.experts.count) : 1;
    all += part * static_cast<double>(t->bytes.size()) / mine.parts(g[id].name);
  }
  return static_cast<std::size_t>(all);
}

void require_memory(const Program& p, std::int64_t context, std::size_t limit) {
  constexpr std::size_t kMega = 1000000;
  const MemoryPlan& plan = p.plan();
  const std::size_t needs = plan.state_bytes + plan.arena_bytes + plan.prepared_bytes;
  if (limit > 0 && needs > limit)
    throw Error("load", str_cat("a context of ", context, " positions takes ", needs / kMega, " MB (cache ",
                                plan.state_bytes / kMega, ", working memory ", plan.arena_bytes / kMega,
                                ", weights packed ", plan.prepared_bytes / kMega, "), and there are ", limit / kMega,
                                " MB: ask for a smaller context"));
}

// A decoder whose states hold the tokens so far as a whole, not by position. When tokens were dropped, it reads the
// kept ones again.
class RecurrentDecoder final : public llm::ProgramDecoder {
 public:
  RecurrentDecoder(const Program& program, const llm::DecoderSizes& sizes, std::shared_ptr<const void> owner)
      : ProgramDecoder(program, sizes, std::move(owner)), step_(static_cast<std::size_t>(sizes.step)) {}

 protected:
  std::span<const float> step(std::span<const int> tokens, std::int64_t past) override {
    if (held_ != past) {
      ProgramDecoder::clear();
      const auto kept = this->tokens().first(static_cast<std::size_t>(past));
      for (std::size_t at = 0; at < kept.size(); at += step_)
        ProgramDecoder::step(kept.subspan(at, std::min(step_, kept.size() - at)), static_cast<std::int64_t>(at));
    }
    held_ = -1;  // unknown, if this throws
    const std::span<const float> logits = ProgramDecoder::step(tokens, past);
    held_ = past + std::ssize(tokens);
    return logits;
  }
  void clear() override {
    ProgramDecoder::clear();
    held_ = 0;
  }

 private:
  std::size_t step_;
  std::int64_t held_ = 0;  // tokens in the states
};

// The graph of a LanguageModel, and what it is of.
struct Decoder {
  LanguageConfig config;
  llm::DecoderSizes sizes;
  LoadedModel model;
};

Decoder make_decoder(const Weights& weights, const LanguageModelOptions& o) {
  const ConfigFile file = config_of(weights, o.ignore);
  LanguageFile opened = open_language(scaled_weights(weights, file), file);
  LanguageConfig& c = opened.config;
  if (c.top != LanguageHead::Words) file.fail("a ", c.architecture, " has no head for words, and continues no text");
  const std::int64_t context = o.context > 0 ? o.context : std::min<std::int64_t>(c.length, 4096);
  if (c.positions > 0 && context > c.length)
    throw Error("load", str_cat("a context of ", context, " positions, and the model has ", c.length));
  fix_frequencies(c, context);
  constexpr std::int64_t kRecurrentChunk = 16;  // rows that read each other at once
  const std::int64_t chunk = c.recurrent() ? std::min(o.chunk, kRecurrentChunk) : o.chunk;
  const llm::DecoderSizes sizes{.vocabulary = c.vocab,
                                .context = context,
                                .step = std::clamp<std::int64_t>(chunk, 1, context),
                                .all_logits = o.all_logits};
  LoadedModel m(file.text("model_type"), std::move(opened.weights));
  m.architecture = c.architecture;
  m.limits = {{"seq", sizes.step}, {"past", context - 1}};
  const LanguageNet& net = m.add(LanguageNet(c));
  take_blocks(c, m.weights);
  m.weights.require_all_used(str_cat("a ", c.architecture));
  Graph& g = m.graph();
  const Tensor tokens = m.inputs["tokens"] = g.input("tokens", {Dim::symbol("seq", 1, sizes.step)}, DType::I64);
  const DecoderStates states{
      .graph = &g, .context = context, .past = Dim::symbol("past", 0, context - 1), .type = o.kv_cache};
  m.give("logits", net.decode(tokens, states, !o.all_logits));
  m.retrieve({});
  return {std::move(c), sizes, std::move(m)};
}

}  // namespace

LoadedModel load_decoder(const Weights& weights, const LanguageModelOptions& o) {
  return make_decoder(weights, o).model;
}

LanguageModel LanguageModel::load(const std::string& path, const LanguageModelOptions& o) {
  if (o.progress) o.progress("reading", 0);
  return load(Weights::open(path), o);
}

LanguageModel LanguageModel::load(const Weights& weights, const LanguageModelOptions& o) {
  const auto progress = [&](std::string_view stage, double part) {
    if (o.progress) o.progress(stage, part);
  };
  const Decoder d = make_decoder(weights, o);
  const Graph& g = d.model.graph();
  const auto model = std::make_shared<Loaded>();
  model->config = d.config;
  model->sizes = d.sizes;
  model->tokenizer = llm::model_tokenizer(weights, d.config.vocab, d.config.ends, o.tokenizer);
  model->chat_template = find_chat_template(weights);
  progress("compiling", 0);
  const llm::RankPart mine(o.ranks, g);
  const Compiler local = o.compiler ? *o.compiler : default_compiler({.threads = o.threads, .precision = o.precision});
  model->program = compile(g, mine.compiler() | local);
  require_memory(model->program, d.sizes.context, o.memory_limit);
  model->bytes_per_token = bytes_read(d.config, g, d.model.weights, mine);
  progress("loading", 0);
  d.model.weights.load(model->program, mine.function());
  progress("loading", 1);
  return LanguageModel(model);
}

const Tokenizer& LanguageModel::tokenizer() const {
  if (!model_->tokenizer)
    throw Error("tokenizer", "no tokenizer lies beside the checkpoint: name a file in LanguageModelOptions::tokenizer");
  return *model_->tokenizer;
}

bool LanguageModel::ends(int token) const {
  const std::vector<int>& eos = config().ends;
  return std::ranges::find(eos, token) != eos.end() || (has_tokenizer() && tokenizer().is_end(token));
}

std::unique_ptr<llm::ProgramDecoder> LanguageModel::session() const {
  if (config().recurrent()) return std::make_unique<RecurrentDecoder>(model_->program, model_->sizes, model_);
  return std::make_unique<llm::ProgramDecoder>(model_->program, model_->sizes, model_);
}

}  // namespace lc
