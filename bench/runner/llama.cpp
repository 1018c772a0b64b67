// Decoding, and reading a prompt, with a GGUF checkpoint and the class that users use.
#include "lightcone/models/llama/llama.h"

#include <algorithm>
#include <cinttypes>
#include <fstream>

#include "lightcone/models/language/language_model.h"
#include "prompt.h"
#include "workload.h"

namespace lc::bench {
namespace {

std::span<const std::byte> largest_memory() {
  std::span<const std::byte> best;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char mode[5] = "";
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, mode) == 3 &&
        mode == std::string_view("rw-p") && end - begin > best.size())
      best = {reinterpret_cast<const std::byte*>(begin), end - begin};
  }
  return best;
}

// What a run needs of a loaded model, and what it costs.
struct Loaded {
  std::shared_ptr<const llm::ProgramModel> model;
  Json facts;
};

Loaded loaded(const Json& w) {
  const auto path = w.at("path").get<std::string>();
  const int threads = w.at("threads").get<int>();
  const auto chunk = w.value("chunk", std::int64_t{64});
  const Precision precision = cpu_options(w).precision;
  if (w.value("experts", false)) {
    LanguageModelOptions o;
    o.context = kContext, o.chunk = chunk, o.kv_cache = DType::F16, o.threads = threads, o.precision = precision;
    return {std::make_shared<const LanguageModel>(LanguageModel::load(path, o)), Json::object()};
  }
  const auto model = std::make_shared<const Llama>(Llama::load(path, {.context = kContext,
                                                                      .chunk = chunk,
                                                                      .kv_cache = DType::F16,  // as the peer's
                                                                      .threads = threads,
                                                                      .precision = precision}));
  return {model, {{"weight_bytes", model->weight_bytes()}, {"converted_bytes", model->converted_bytes()}}};
}

class LlamaRun final : public Workload {
 public:
  explicit LlamaRun(const Json& w)
      : prompt_(w.at("kind") == "prompt" ? w.at("tokens").get<int>() : 0),
        loaded_(loaded(w)),
        session_(model().session()),
        text_(ids(std::max(prompt_, kContext), kVocabulary)),
        threads_(w.at("threads").get<int>()) {
    const std::span<const float> logits = session_->feed(std::span(text_).first(kPrompt));
    answer_ = summary(logits);
  }
  void call() override { timed_call(); }
  // Reads a prompt into an empty cache, or one token after the others. Positions stay within [64, 512), as the peer's
  // do, and returning to 64 is not counted.
  double timed_call() override {
    const auto first = [&](int n) { return std::span(text_).first(static_cast<std::size_t>(n)); };
    if (prompt_ == 0 && session_->tokens().size() >= kLast) {
      session_->reset();
      session_->feed(first(kPrompt));
    }
    const double begin = now();
    if (prompt_ > 0) {
      session_->reset();
      session_->feed(first(prompt_));
    } else {
      session_->feed(text_[session_->tokens().size()]);
    }
    return now() - begin;
  }
  Json answer() override { return answer_; }
  // A token reads all weights. The limit reads the largest writable memory of the process, because the checkpoint is
  // read-only.
  Workload* limit() override {
    if (prompt_ == 0 && !limit_) {
      const std::span<const std::byte> weights = largest_memory();
      limit_ = limit_of(weights.data(), nullptr, std::min(weights.size(), model().bytes_per_token()), threads_);
    }
    return limit_.get();
  }
  Json facts() override {
    Json all = {{"kernels", model().program().kernels()},
                {"interpreted", model().program().interpreted()},
                {"bytes_per_token", model().bytes_per_token()},
                {"planned_bytes", model().program().plan().total_bytes()}};
    all.update(loaded_.facts);
    return all;
  }

 private:
  const llm::ProgramModel& model() const { return *loaded_.model; }

  int prompt_;
  Loaded loaded_;
  std::unique_ptr<llm::ProgramDecoder> session_;
  std::vector<int> text_;
  Json answer_;
  int threads_;
  std::unique_ptr<Workload> limit_;
};

}  // namespace

std::unique_ptr<Workload> make_llama(const Json& w) { return std::make_unique<LlamaRun>(w); }

}  // namespace lc::bench
