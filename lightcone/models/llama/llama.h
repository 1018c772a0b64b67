// Llama: a checkpoint compiled for this machine. LlamaSession: one conversation with it.
//
//   const Llama model = Llama::load("tinyllama.gguf");
//   LlamaSession chat(model);
//   Sampler pick({.temperature = 0.8, .seed = 1});
//   auto logits = chat.feed(model.tokenizer().encode("Once upon a time"));
//   int id = pick(logits, chat.tokens());
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/text/chat_template.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/llama/llama_config.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/passes/compiler.h"
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
  std::optional<Compiler> compiler = {};     // default: generic() | cpu({threads, precision})
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
  // Called with the current stage and the finished part of it, 0 to 1.
  std::function<void(std::string_view stage, double part)> progress = {};
};

// Returns the tokenizer in `file` or, without a file, in the checkpoint or its directory; null if there is none. Throws
// Error if the tokenizer belongs to another model.
std::shared_ptr<const Tokenizer> llama_tokenizer(const Weights& w, const LlamaConfig& c, const std::string& file = "");

// A handle to a compiled model. Copies and sessions share the model, which lives as long as any of them. There is no
// move: a moved Llama is copied, so that every Llama has a model.
class Llama {
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
  const Program& program() const { return model_->program; }    // the compiled program
  // Throws Error if there is none.
  const Tokenizer& tokenizer() const;
  bool has_tokenizer() const { return model_->tokenizer != nullptr; }  // true if the checkpoint has a tokenizer
  // Its text is "" if the checkpoint has none. models/llama/chat.h uses it for conversations.
  const ChatTemplateSource& chat_template() const { return model_->chat_template; }
  bool ends(int token) const;                                              // true for an end-of-text token
  std::size_t weight_bytes() const { return model_->weight_bytes; }        // bytes of all weights, stored or unpacked
  std::size_t bytes_per_token() const { return model_->bytes_per_token; }  // bytes of the weights read per token
  std::size_t converted_bytes() const { return model_->converted_bytes; }  // bytes unpacked into memory at load

 private:
  struct Model {
    LlamaConfig config;
    LlamaShape shape;
    Program program;
    std::shared_ptr<const Tokenizer> tokenizer;
    ChatTemplateSource chat_template;
    std::size_t weight_bytes = 0, bytes_per_token = 0, converted_bytes = 0;
  };
  explicit Llama(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  std::shared_ptr<const Model> model_;
};

// The KV cache and the tokens of one conversation. A session is for one thread at a time.
class LlamaSession {
 public:
  // Begins an empty conversation.
  explicit LlamaSession(Llama model);
  // Appends tokens and returns logits, valid until the next call: [vocab] of the last token or, if the model was loaded
  // with all_logits, [tokens.size(), vocab]. Throws Error if the context is full, if a token is outside the vocabulary,
  // or if a logit is NaN; that message names the layer of the first NaN. After an Error the tokens count as never fed.
  std::span<const float> feed(std::span<const int> tokens);
  // Appends one token.
  std::span<const float> feed(int token) { return feed({&token, 1}); }
  std::span<const int> tokens() const { return tokens_; }  // the tokens in the cache
  std::int64_t room() const;                               // free positions of the context
  // Drops all but the first `tokens` tokens; the cache keeps their positions. Throws Error if there are fewer tokens.
  void truncate(std::size_t tokens);
  // Drops all tokens and clears the cache.
  void reset();
  Context& context() { return context_; }  // the context of the model's program

 private:
  Llama model_;
  std::span<const float> step(std::span<const int> tokens, std::int64_t past);

  Context context_;
  bool compiled_;
  std::vector<int> tokens_;
  std::vector<std::int64_t> ids_;
  std::vector<float> logits_, step_logits_;
};

}  // namespace lc
