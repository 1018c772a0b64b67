#include "lightcone/models/whisper/whisper.h"

#include <algorithm>
#include <cmath>

#include "lightcone/io/printable.h"
#include "lightcone/llm/model_tokenizer.h"
#include "lightcone/models/whisper/ggml_file.h"
#include "lightcone/models/whisper/transcriber.h"
#include "lightcone/runtime/default_compiler.h"

namespace lc {

Whisper Whisper::load(const std::string& path, const WhisperOptions& o) {
  if (!is_ggml_whisper(path)) return load(Weights::open(path), o);
  const GgmlWhisper file = read_ggml_whisper(path);
  return load(file.weights, o.tokenizer.empty() ? file.tokenizer : nullptr, o);
}

Whisper Whisper::load(const Weights& w, const WhisperOptions& o) { return load(w, nullptr, o); }

Whisper Whisper::load(const Weights& w, const std::shared_ptr<const Tokenizer>& own, const WhisperOptions& o) {
  if (o.beams < 1 || o.beams > 64) throw Error("whisper", str_cat(o.beams, " beams: there are 1 to 64"));
  const ConfigFile config(w, o.ignore);
  if (const std::string type = config.text("model_type"); type != "whisper")
    config.fail("model_type is ", type, ", and not whisper");
  Seq2SeqConfig c = Seq2SeqConfig::from(config);
  c.complete(w, config);
  const Compiler compiler =
      o.compiler ? *o.compiler : default_compiler({.threads = o.threads, .precision = o.precision});
  const auto loaded = std::make_shared<LoadedWhisper>();
  loaded->tokenizer = own ? own : llm::model_tokenizer(w, c.vocab, {}, o.tokenizer);
  if (!loaded->tokenizer)
    throw file_error("load_model", w.path(),
                     "there is no tokenizer.json beside it: name a file in WhisperOptions::tokenizer");
  loaded->tokens = WhisperTokens::from(w, *loaded->tokenizer, c.vocab, c.decoder.layers, c.decoder.heads);
  Seq2SeqShape shape{.rows = o.beams, .source = c.encoder.length, .context = c.decoder.length};
  auto& heads = loaded->tokens.alignment_heads;
  if (heads.empty())  // as OpenAI's models without a list: all of the later layers
    for (std::int64_t k = c.decoder.layers / 2 * c.decoder.heads; k < c.decoder.layers * c.decoder.heads; ++k)
      heads.emplace_back(static_cast<int>(k / c.decoder.heads), static_cast<int>(k % c.decoder.heads));
  if (o.words) shape.watched = heads;
  loaded->programs = std::make_shared<const Seq2SeqPrograms>(w, c, shape, compiler);
  loaded->log_mel = LogMelProgram(c.mels, loaded->frames(), compiler);
  return Whisper(loaded);
}

const WhisperTokens& Whisper::tokens() const { return loaded_->tokens; }
const Tokenizer& Whisper::tokenizer() const { return *loaded_->tokenizer; }
const Seq2SeqPrograms& Whisper::programs() const { return *loaded_->programs; }

Transcript Whisper::transcribe(std::span<const float> samples, const TranscribeOptions& o) const {
  return Transcriber(*loaded_, o).transcribe(samples);
}

std::vector<std::pair<std::string, double>> Whisper::languages(std::span<const float> samples) const {
  return Transcriber(*loaded_, {}).languages(loaded_->log_mel(samples));
}

std::string Transcript::text() const {
  std::string all;
  for (const TranscriptSegment& s : segments) all += s.text;
  return all;
}

}  // namespace lc
