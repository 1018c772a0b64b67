// Llama: a checkpoint compiled for this machine. LlamaSession: one conversation with it.
//
//   const Llama model = Llama::load("tinyllama.gguf");
//   LlamaSession session(model);
//   llm::Sampler pick({.temperature = 0.8, .seed = 1});
//   auto logits = session.feed(model.tokenizer().encode("Once upon a time"));
//   int id = pick(logits, session.tokens());
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/distributed/collectives.h"
#include "lightcone/io/text/chat_template.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/llm/program_model.h"
#include "lightcone/models/llama/llama_config.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"
#include "lightcone/runtime/program.h"

namespace lc {

// Options of Llama::load().
struct LlamaOptions {
  std::int64_t context = 0;  // positions of the KV cache; 0: the model's own, at most 4096
  std::int64_t chunk = 512;  // prompt tokens per run; weights are unpacked once per run
  bool all_logits = false;   // logits of all tokens, not only of the last
  // The type of the KV cache: F32 (exact), F16 or BF16 (half the bytes), or I8 (a quarter of the bytes, plus four bytes
  // per head and position). Measured on three small story models, logits change by 2e-4 to 5e-4 of their magnitude with
  // F16, 1e-3 to 4e-3 with BF16 and 3e-3 to 1.3e-2 with I8, and perplexity by at most 0.02, 0.05 and 0.7 %.
  DType kv_cache = DType::F32;
  std::optional<Compiler> compiler = {};     // unset: default_compiler({threads, precision})
  int threads = 0;                           // threads of the default compiler; 0: all cores this process may use
  Precision precision = Precision::Highest;  // Medium: faster prompts and quantised weights
  bool load_weights = true;                  // false: only compiles, to inspect a model
  bool map = true;                           // false: reads the file into memory, see Weights::open()
  // The maximum number of bytes of caches, working memory and weights packed or unpacked at load together. Beyond it
  // load() throws Error before it allocates any of them. 0: no limit. Weights read in place from the file do not count.
  std::size_t memory_limit = 0;
  int layers = 0;  // number of leading layers to load; 0: all
  // Called after each pass; see CompileOptions.
  std::function<void(const Pass&, const Graph& before, const Graph& after)> observe = {};
  std::string tokenizer = {};  // a tokenizer file; "": the one in the checkpoint or in its directory
  // Several ranks hold the model together, each its part of the weights and of the cache (docs/distributed.md). All of
  // them load it with the same options, and then feed the same tokens at the same time; logits are whole on each.
  std::optional<Collectives> ranks = {};
  // Called with the current stage and the finished part of it, 0 to 1.
  std::function<void(std::string_view stage, double part)> progress = {};
};

// A handle to a compiled model. Copies and sessions share the model, which lives as long as any of them. There is no
// move: a moved Llama is copied, so that every Llama has a model.
class Llama final : public llm::ProgramModel {
 public:
  // Opens and compiles a checkpoint (GGUF, a folder of safetensors, or llama2.c) and loads its weights. Throws Error if
  // the file is invalid, is not of the Llama family, or exceeds the memory limit.
  static Llama load(const std::string& path, const LlamaOptions& o = {});
  // The same for an open checkpoint.
  static Llama load(Weights weights, const LlamaOptions& o = {});

  Llama(const Llama&) = default;
  Llama& operator=(const Llama&) = default;

  const LlamaConfig& config() const { return model_->config; }  // the hyperparameters
  const LlamaShape& shape() const { return model_->shape; }     // the sizes of the cache and of a run
  const Program& program() const override { return model_->program; }
  // Throws Error if there is none.
  const Tokenizer& tokenizer() const override;
  bool has_tokenizer() const override { return model_->tokenizer != nullptr; }
  // Its text is "" if the checkpoint has none. llm::Chat uses it for conversations.
  const ChatTemplateSource& chat_template() const override { return model_->chat_template; }
  bool ends(int token) const override;                                            // true for an end-of-text token
  std::int64_t context_length() const override { return model_->shape.context; }  // positions of the cache
  std::int64_t trained_length() const override { return model_->config.context; }
  std::unique_ptr<llm::ProgramDecoder> session() const override;     // a LlamaSession
  std::size_t weight_bytes() const { return model_->weight_bytes; }  // bytes of all weights, stored or unpacked
  std::size_t bytes_per_token() const override { return model_->bytes_per_token; }
  std::size_t converted_bytes() const { return model_->converted_bytes; }  // bytes unpacked into memory at load

 private:
  friend class LlamaSession;
  struct Loaded {
    LlamaConfig config;
    LlamaShape shape;
    Program program;
    std::shared_ptr<const Tokenizer> tokenizer;
    ChatTemplateSource chat_template;
    std::size_t weight_bytes = 0, bytes_per_token = 0, converted_bytes = 0;
  };
  explicit Llama(std::shared_ptr<const Loaded> model) : model_(std::move(model)) {}

  std::shared_ptr<const Loaded> model_;
};

// The KV cache and the tokens of one conversation; llm::Decoder has its functions. A logit that is NaN is an Error of
// feed(), which names the layer of the first NaN. A session is for one thread at a time.
class LlamaSession final : public llm::ProgramDecoder {
 public:
  // Begins an empty conversation.
  explicit LlamaSession(const Llama& model);
};

}  // namespace lc
