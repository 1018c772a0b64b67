// Llama: a checkpoint compiled for this machine, and LlamaSession: one conversation with it.
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

struct LlamaOptions {
  std::int64_t context = 0;  // positions of the cache; 0: the model's own, at most 4096
  std::int64_t chunk = 512;  // prompt tokens a run; weights are unpacked once for each
  bool all_logits = false;
  // The type of the KV cache: F32 (exact), F16 or BF16 (half the bytes), or I8 (a quarter, and four bytes for each
  // head of a position). Measured on three small story models, logits move by 2e-4 to 5e-4 of their size with F16,
  // 1e-3 to 4e-3 with BF16 and 3e-3 to 1.3e-2 with I8, perplexity by at most 0.02, 0.05 and 0.7 %.
  DType kv_cache = DType::F32;
  std::optional<Compiler> compiler = {};  // default: generic() | cpu({threads, precision})
  int threads = 0;
  Precision precision = Precision::Highest;  // Medium: faster prompts and quantised weights
  bool load_weights = true;                  // false: only plan, for looking at a model
  bool map = true;                           // false: reads the file into memory, see Weights::open
  // The most bytes that caches, working memory and weights packed or unpacked at load may take together: an
  // Error before any of them is allocated. 0: no limit. Weights read in place from the file do not count.
  std::size_t memory_limit = 0;
  int layers = 0;  // only the first so many; 0: all
  // Called after each pass; see CompileOptions.
  std::function<void(const Pass&, const Graph& before, const Graph& after)> observe = {};
  std::string tokenizer = {};  // a file; "": what the checkpoint or its directory holds
  // Called with what is being done and how much of it, 0 to 1.
  std::function<void(std::string_view stage, double part)> progress = {};
};

// The tokenizer that is in a checkpoint or beside it, or in `file`; null where there is none. Error where it is another
// model's.
std::shared_ptr<const Tokenizer> llama_tokenizer(const Weights& w, const LlamaConfig& c, const std::string& file = "");

// A handle: copies and sessions share the model, which lives as long as any of them. Moving one copies it, so that a
// Llama always has a model.
class Llama {
 public:
  static Llama load(const std::string& path, const LlamaOptions& o = {});
  static Llama load(Weights weights, const LlamaOptions& o = {});

  Llama(const Llama&) = default;
  Llama& operator=(const Llama&) = default;

  const LlamaConfig& config() const { return model_->config; }
  const LlamaShape& shape() const { return model_->shape; }
  const Program& program() const { return model_->program; }
  const Tokenizer& tokenizer() const;  // Error when there is none
  bool has_tokenizer() const { return model_->tokenizer != nullptr; }
  // Its text is "" where the checkpoint has none; models/llama/chat.h holds conversations by it.
  const ChatTemplateSource& chat_template() const { return model_->chat_template; }
  bool ends(int token) const;                                              // an end-of-text token
  std::size_t weight_bytes() const { return model_->weight_bytes; }        // as they are stored, or unpacked
  std::size_t bytes_per_token() const { return model_->bytes_per_token; }  // of them, read for each token
  std::size_t converted_bytes() const { return model_->converted_bytes; }  // of it, unpacked into memory at load

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

class LlamaSession {
 public:
  explicit LlamaSession(Llama model);
  // Appends tokens and returns the logits of the last one, or of all of them when the model was
  // loaded with all_logits: [vocab] or [tokens.size(), vocab], valid until the next call. Logits that are NaN are an
  // Error that names the layer they come from. After an Error the tokens count as never given.
  std::span<const float> feed(std::span<const int> tokens);
  std::span<const float> feed(int token) { return feed({&token, 1}); }
  std::span<const int> tokens() const { return tokens_; }
  std::int64_t room() const;  // positions left
  // Forgets all but the first so many tokens; the cache keeps those. Error where there are not so many.
  void truncate(std::size_t tokens);
  void reset();
  Context& context() { return context_; }

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
