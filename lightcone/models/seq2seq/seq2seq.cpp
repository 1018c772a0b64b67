#include "lightcone/models/seq2seq/seq2seq.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lightcone/io/printable.h"
#include "lightcone/llm/model_tokenizer.h"
#include "lightcone/llm/sampler.h"
#include "lightcone/models/seq2seq/text_beams.h"
#include "lightcone/runtime/default_compiler.h"

namespace lc {
namespace {

constexpr std::int64_t kLongest = 1024;  // by default

// Turns logits into the logarithms of probabilities.
void take_logarithms(std::span<float> logits) {
  const auto most = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  const double all = most + std::log(sum);
  for (float& x : logits) x = static_cast<float>(static_cast<double>(x) - all);
}

// One text, decoded token by token, as llm::generate() wants it.
class Session final : public llm::Decoder {
 public:
  Session(std::shared_ptr<const Seq2SeqPrograms> programs, std::span<const std::int64_t> source)
      : Decoder({.vocabulary = programs->config().vocab, .context = programs->shape().context}), decoder_(programs) {
    decoder_.encode(source);
  }

 protected:
  std::span<const float> step(std::span<const int> tokens, std::int64_t past) override {
    decoder_.truncate(past);
    ids_.assign(tokens.begin(), tokens.end());
    return decoder_.step(ids_);
  }
  void clear() override { decoder_.begin(); }

 private:
  CachedDecoder decoder_;
  std::vector<std::int64_t> ids_;
};

}  // namespace

struct Seq2Seq::Loaded {
  std::shared_ptr<const Seq2SeqPrograms> programs;
  std::shared_ptr<const Tokenizer> tokenizer;
  Seq2SeqGeneration generation;

  std::vector<int> greedy(CachedDecoder& d, const Seq2SeqGeneration& g, std::int64_t most,
                          const std::function<bool(int)>& on_token) const;
  std::vector<int> search(CachedDecoder& d, const Seq2SeqGeneration& g, std::int64_t most) const;
};

Seq2Seq Seq2Seq::load(const std::string& path, const Seq2SeqOptions& o) { return load(Weights::open(path), o); }

Seq2Seq Seq2Seq::load(const Weights& w, const Seq2SeqOptions& o) {
  const ConfigFile config(w, o.ignore);
  Seq2SeqConfig c = Seq2SeqConfig::from(config);
  c.complete(w, config);
  if (c.hears()) config.fail("model_type is ", c.type, ", which takes sounds: Whisper::load() opens it");
  if (o.beams < 0 || o.beams > 64) throw Error("seq2seq", str_cat(o.beams, " beams: there are 1 to 64"));
  const auto loaded = std::make_shared<Loaded>();
  loaded->generation = Seq2SeqGeneration::from(w, c);
  if (o.beams > 0) loaded->generation.beams = o.beams;
  loaded->tokenizer = llm::model_tokenizer(w, c.vocab, loaded->generation.ends, o.tokenizer);
  const auto length = [](std::int64_t asked, std::int64_t own) {
    if (asked < 0 || asked > own)
      throw Error("seq2seq", str_cat("a length of ", asked, " tokens: the model has 1 to ", own));
    return asked > 0 ? asked : std::min(own, kLongest);
  };
  loaded->programs = std::make_shared<const Seq2SeqPrograms>(
      w, c,
      Seq2SeqShape{.rows = loaded->generation.beams,
                   .source = length(o.source, c.encoder.length),
                   .context = length(o.context, c.decoder.length)},
      o.compiler ? *o.compiler : default_compiler({.threads = o.threads, .precision = o.precision}));
  return Seq2Seq(loaded);
}

std::vector<int> Seq2Seq::Loaded::greedy(CachedDecoder& d, const Seq2SeqGeneration& g, std::int64_t most,
                                         const std::function<bool(int)>& on_token) const {
  std::vector<int> text;
  std::vector<std::int64_t> last{g.start};
  while (std::ssize(text) < most) {
    const std::span<const float> logits = d.step(last);
    std::vector<float> row(logits.begin(), logits.end());
    apply_rules(g, row, text, most);
    text.push_back(llm::most_likely(row));
    last = {text.back()};
    if (std::ranges::count(g.ends, text.back()) > 0) break;
    if (on_token && !on_token(text.back())) break;
  }
  return text;
}

std::vector<int> Seq2Seq::Loaded::search(CachedDecoder& d, const Seq2SeqGeneration& g, std::int64_t most) const {
  TextBeams beams(g, g.beams, most);
  const auto rows = static_cast<std::size_t>(g.beams);
  std::vector<std::int64_t> last(rows, g.start);
  std::span<const float> logits = d.step(last);
  for (;;) {
    std::vector<float> all(logits.begin(), logits.end());
    const std::size_t vocab = all.size() / rows;
    for (std::size_t r = 0; r < rows; ++r) {
      const std::span<float> row = std::span(all).subspan(r * vocab, vocab);
      take_logarithms(row);
      apply_rules(g, row, beams.running()[r].tokens, most);
    }
    if (beams.extend(all)) return beams.best();
    for (std::size_t r = 0; r < rows; ++r) last[r] = beams.running()[r].tokens.back();
    logits = d.step(last, beams.parents());
  }
}

std::vector<int> Seq2Seq::generate(std::span<const int> source, const Seq2SeqGenerateOptions& o) const {
  Seq2SeqGeneration g = generation();
  if (!o.first.empty()) {
    const std::vector<std::string>& pieces = tokenizer().vocabulary().pieces;
    const auto at = std::ranges::find(pieces, o.first);
    if (at == pieces.end()) throw Error("generate", str_cat("the model has no token ", in_quotes(o.first)));
    g.forced_first = static_cast<int>(at - pieces.begin());
  }
  if (o.max_tokens < 0) throw Error("generate", str_cat("max_tokens is ", o.max_tokens));
  std::int64_t most = programs().shape().context - 1;
  if (o.max_tokens > 0) most = std::min<std::int64_t>(most, o.max_tokens);
  else if (g.max_length > 1) most = std::min(most, g.max_length - 1);
  CachedDecoder d(loaded_->programs);
  d.encode(std::vector<std::int64_t>(source.begin(), source.end()));
  std::vector<int> text = g.beams == 1 ? loaded_->greedy(d, g, most, o.on_token) : loaded_->search(d, g, most);
  if (!text.empty() && ends(text.back())) text.pop_back();
  return text;
}

std::string Seq2Seq::generate(std::string_view text, const Seq2SeqGenerateOptions& o) const {
  return tokenizer().decode(generate(source(text), o));
}

std::vector<int> Seq2Seq::source(std::string_view text) const { return tokenizer().encode(text); }

std::unique_ptr<llm::Decoder> Seq2Seq::decoder(std::span<const int> source) const {
  if (programs().shape().rows != 1)
    throw Error("decoder", "the model was loaded with several beams: Seq2SeqOptions::beams = 1 is for one text");
  return std::make_unique<Session>(loaded_->programs, std::vector<std::int64_t>(source.begin(), source.end()));
}

const Tokenizer& Seq2Seq::tokenizer() const {
  if (!loaded_->tokenizer)
    throw Error("tokenizer", "there is no tokenizer beside the model: name a file in Seq2SeqOptions::tokenizer");
  return *loaded_->tokenizer;
}
const Seq2SeqGeneration& Seq2Seq::generation() const { return loaded_->generation; }
const Seq2SeqPrograms& Seq2Seq::programs() const { return *loaded_->programs; }
bool Seq2Seq::ends(int token) const { return std::ranges::count(generation().ends, token) > 0; }

}  // namespace lc
