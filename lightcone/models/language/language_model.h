// LanguageModel: a decoder-only language model of any known architecture, compiled with a cache for this machine.
//
//   const LanguageModel model = LanguageModel::load("pythia-70m");
//   const auto session = model.session();
//   llm::Sampler pick({.temperature = 0.8, .seed = 1});
//   auto logits = session->feed(model.tokenizer().encode("Once upon a time"));
//
// Llama (models/llama/llama.h) opens llama2.c files, trains, and saves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/distributed/collectives.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/llm/program_model.h"
#include "lightcone/models/files/loaded_model.h"
#include "lightcone/models/language/config/language_config.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc {

// Options of LanguageModel::load(); those of Llama::load() of the same names.
struct LanguageModelOptions {
  std::int64_t context = 0;               // positions of the cache; 0: the model's own, at most 4096
  std::int64_t chunk = 512;               // prompt tokens per run
  bool all_logits = false;                // logits of all tokens, not only of the last
  DType kv_cache = DType::F32;            // F32, F16, BF16 or I8
  std::optional<Compiler> compiler = {};  // unset: default_compiler({threads, precision})
  int threads = 0;                        // threads of the default compiler; 0: all cores this process may use
  Precision precision = Precision::Highest;
  // The maximum number of bytes of caches, working memory and prepared weights together; beyond it load() throws Error
  // before it allocates any of them. 0: no limit.
  std::size_t memory_limit = 0;
  std::string tokenizer = {};            // a tokenizer file; "": the one in the directory of the checkpoint
  std::vector<std::string> ignore = {};  // keys of config.json that change nothing
  // Several ranks hold the model together, each its part of the weights and of the cache (docs/distributed.md). All of
  // them load it with the same options, and then feed the same tokens at the same time; logits are whole on each.
  std::optional<Collectives> ranks = {};
  // Called with the current stage and the finished part of it, 0 to 1.
  std::function<void(std::string_view stage, double part)> progress = {};
};

// Returns the graph that LanguageModel compiles, for exporters and programs of one's own: input "tokens" i64 [seq],
// which follow `past` others; output "logits" [vocabulary] of the last of them, or [seq, vocabulary] with all_logits.
// Its states are the caches of `context` positions. Options about running it are not used. Throws Error for the reasons
// of LanguageModel::load().
LoadedModel load_decoder(const Weights& weights, const LanguageModelOptions& o = {});

// A handle to a compiled model. Copies and sessions share the model, which lives as long as any of them.
class LanguageModel final : public llm::ProgramModel {
 public:
  // Opens and compiles a checkpoint with a config.json, or a GGUF file, and loads its weights. Throws Error for the
  // reasons of load_model(), for a model without a head for words, for a context that its positions do not have, and
  // beyond the memory limit.
  static LanguageModel load(const std::string& path, const LanguageModelOptions& o = {});
  // The same for an open checkpoint.
  static LanguageModel load(const Weights& weights, const LanguageModelOptions& o = {});

  const LanguageConfig& config() const { return model_->config; }  // the hyperparameters
  const Program& program() const override { return model_->program; }
  // Throws Error if there is none.
  const Tokenizer& tokenizer() const override;
  bool has_tokenizer() const override { return model_->tokenizer != nullptr; }
  const ChatTemplateSource& chat_template() const override { return model_->chat_template; }
  bool ends(int token) const override;
  std::int64_t context_length() const override { return model_->sizes.context; }
  std::int64_t trained_length() const override { return model_->config.length; }
  std::size_t bytes_per_token() const override { return model_->bytes_per_token; }
  std::unique_ptr<llm::ProgramDecoder> session() const override;

 private:
  struct Loaded {
    LanguageConfig config;
    llm::DecoderSizes sizes;
    Program program;
    std::shared_ptr<const Tokenizer> tokenizer;
    ChatTemplateSource chat_template;
    std::size_t bytes_per_token = 0;
  };
  explicit LanguageModel(std::shared_ptr<const Loaded> model) : model_(std::move(model)) {}

  std::shared_ptr<const Loaded> model_;
};

}  // namespace lc
