#include "bench/distributed/decode.h"

#include <map>
#include <optional>

#include "bench/distributed/exchanges.h"
#include "bench/runner/prompt.h"
#include "lightcone/distributed/mpi/mpi.h"
#include "lightcone/models/language/language_model.h"

namespace lc::bench {
namespace {

constexpr int kAnswered = 8;   // tokens, one at a time, behind which the logits are compared
constexpr int kProfiled = 16;  // tokens

// One model with its cache, which reads one token after the other.
class Decoding {
 public:
  Decoding(const Json& w, const std::shared_ptr<Communicator>& ranks)
      : model_(LanguageModel::load(w.at("path").get<std::string>(), options(w, ranks))),
        session_(model_.session()),
        text_(ids(kContext, kVocabulary)) {
    rewind();
  }
  // Returns how many seconds a token took. Returning to the prompt's end is not counted.
  double token() {
    if (session_->tokens().size() >= kLast) rewind();
    const double begin = now();
    logits_ = session_->feed(text_[session_->tokens().size()]);
    return now() - begin;
  }
  void rewind() {
    session_->reset();
    logits_ = session_->feed(std::span(text_).first(kPrompt));
  }
  std::span<const float> logits() const { return logits_; }
  const LanguageModel& model() const { return model_; }
  Context& context() { return session_->context(); }

 private:
  static LanguageModelOptions options(const Json& w, const std::shared_ptr<Communicator>& ranks) {
    LanguageModelOptions o;
    o.context = kContext, o.chunk = kPrompt, o.kv_cache = DType::F16;  // as the peer's
    o.threads = w.at("threads").get<int>();
    o.precision = w.value("precision", "") == "medium" ? Precision::Medium : Precision::Highest;
    if (ranks->size() > 1) o.ranks = Collectives(Mesh({{"model", ranks->size()}}), ranks);
    return o;
  }

  LanguageModel model_;
  std::unique_ptr<llm::ProgramDecoder> session_;
  std::vector<int> text_;
  std::span<const float> logits_;
};

class RankDecoding final : public Workload {
 public:
  explicit RankDecoding(const Json& w)
      : ranks_(mpi_ranks()), recorder_(std::make_shared<Recorder>(ranks_)), together_(w, recorder_) {
    if (ranks_->size() > 1) alone_.emplace(w, std::make_shared<Alone>(ranks_->rank(), ranks_->size()));
  }

  void call() override { together_.token(); }
  Json answer() override {
    together_.rewind();
    for (int k = 0; k < kAnswered; ++k) call();
    const Json answer = summary(together_.logits());
    recorder_->record(true);
    call();
    recorder_->record(false);
    exchanges_ = std::make_unique<Replay>(ranks_, recorder_->all());
    return answer;
  }
  // Tokens, the same without exchanges, and the exchanges of a token without it.
  Json measure(int calls) override {
    meet(*ranks_);
    const double cpu = cpu_seconds();
    double tokens = 0;
    for (int k = 0; k < calls; ++k) tokens += together_.token();
    Json reply{{"s", tokens / calls}, {"cpu_s", (cpu_seconds() - cpu) / calls}, {"calls", calls}};
    if (!alone_) return reply;
    meet(*ranks_);
    double alone = 0, exchanges = 0;
    for (int k = 0; k < calls; ++k) alone += alone_->token();
    const double before = cpu_seconds();
    for (int k = 0; k < calls; ++k) exchanges += exchanges_->run();
    reply["alone_s"] = alone / calls;
    reply["exchange_s"] = exchanges / calls;
    reply["exchange_cpu_s"] = (cpu_seconds() - before) / calls;
    return reply;
  }
  Json facts() override {
    const Program& p = together_.model().program();
    return {{"kernels", p.kernels()},
            {"bytes_per_token", together_.model().bytes_per_token()},
            {"planned_bytes", p.plan().total_bytes()},
            {"exchanged", exchanges_->summary()},
            {"kernels_ms", profile()}};
  }

 private:
  // Milliseconds of a token by what they are for, of tokens that are not in the table.
  Json profile() {
    Context& c = together_.context();
    together_.rewind();
    c.profile(true);
    for (int k = 0; k < kProfiled; ++k) call();
    const Profile p = c.profile();
    c.profile(false);
    const double ms = 1e3 / static_cast<double>(p.runs);
    std::map<std::string, double> parts{{"exchanges", 0}, {"computing", 0}};
    for (const KernelProfile& k : p.kernels) parts[is_exchange(k) ? "exchanges" : "computing"] += k.seconds * ms;
    parts["outside"] = p.seconds * ms - parts["exchanges"] - parts["computing"];
    return parts;
  }

  std::shared_ptr<Communicator> ranks_;
  std::shared_ptr<Recorder> recorder_;
  Decoding together_;
  std::optional<Decoding> alone_;
  std::unique_ptr<Replay> exchanges_;
};

}  // namespace

std::unique_ptr<Workload> make_decoding(const Json& w) { return std::make_unique<RankDecoding>(w); }

}  // namespace lc::bench
