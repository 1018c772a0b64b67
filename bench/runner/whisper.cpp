// Whisper, a folder opened as users open it: tokens of its decoder behind an encoded source, or encoder and decoder as
// a whole. Greedy, one sequence.
#include "lightcone/llm/sampler.h"
#include "lightcone/models/seq2seq/cached_decoder.h"
#include "workload.h"

namespace lc::bench {
namespace {

std::shared_ptr<const Seq2SeqPrograms> programs(const Json& w) {
  const Weights weights = Weights::open(w.at("path").get<std::string>());
  const ConfigFile config(weights, {});
  Seq2SeqConfig c = Seq2SeqConfig::from(config);
  c.complete(weights, config);
  const Seq2SeqShape shape{.rows = 1, .source = c.encoder.length, .context = c.decoder.length};
  return std::make_shared<const Seq2SeqPrograms>(weights, c, shape, generic() | cpu(cpu_options(w)));
}

class WhisperRun final : public Workload {
 public:
  explicit WhisperRun(const Json& w)
      : before_(peak_rss_bytes()),
        whole_(w.at("part") == "whole"),
        tokens_(w.at("tokens").get<int>()),
        programs_(programs(w)),
        decoder_(programs_),
        source_(input_values("input_features",
                             static_cast<std::size_t>(programs_->config().mels * 2 * programs_->shape().source))) {
    decoder_.encode(source_);
    answer_ = summary(begin());
  }
  void call() override { timed_call(); }
  // The time of all tokens behind the prompt, or from the spectrogram on.
  double timed_call() override {
    double start = now();
    if (whole_) decoder_.encode(source_);
    std::span<const float> logits = begin();
    if (!whole_) start = now();
    const int steps = whole_ ? tokens_ - 1 : tokens_;
    for (int k = 0; k < steps; ++k) {
      const std::int64_t id = llm::most_likely(logits);
      logits = decoder_.step(std::span(&id, 1));
    }
    return now() - start;
  }
  Json answer() override { return answer_; }
  Json facts() override {
    return {{"kernels", programs_->decoder().kernels()},
            {"interpreted", programs_->decoder().interpreted()},
            {"rss_before", before_}};
  }

 private:
  // Reads the tokens of a start, a language, a transcript and no times.
  std::span<const float> begin() {
    static constexpr std::int64_t kPrompt[] = {50258, 50259, 50359, 50363};
    decoder_.begin();
    return decoder_.step(kPrompt);
  }

  double before_;  // the peak of the process before the model
  bool whole_;
  int tokens_;
  std::shared_ptr<const Seq2SeqPrograms> programs_;
  CachedDecoder decoder_;
  std::vector<float> source_;
  Json answer_;
};

}  // namespace

std::unique_ptr<Workload> make_whisper(const Json& w) { return std::make_unique<WhisperRun>(w); }

}  // namespace lc::bench
