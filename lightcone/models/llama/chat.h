// LlamaChat: a conversation with a model, written down as its chat template wants it.
//
//   LlamaChat chat(Llama::load("tinyllama.gguf"), {.system = "Be brief."});
//   chat.say("Who was Ada Lovelace?", [](std::string_view piece) { return std::cout << piece << std::flush, true; });
//   chat.say("When did she live?");   // .text; the cache still holds what was said before
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/text/chat_template.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/models/llama/sampler.h"

namespace lc {

struct LlamaChatOptions {
  std::string system = {};  // the system message; "": none, so that the template puts its own where it has one
  SamplerOptions sampler = {};
  int max_tokens = 0;                     // of an answer; 0: as many as the context holds
  std::string variables = {};             // further ones of the template: see ChatOptions
  ChatTemplateSource chat_template = {};  // default: the model's own
};

class LlamaChat {
 public:
  // Error where there is no template or no tokenizer, or the template cannot be read.
  explicit LlamaChat(Llama model, const LlamaChatOptions& o = {});

  enum class End : std::uint8_t { Turn, MaxTokens, Context, Stopped };
  struct Reply {
    std::string text;      // UTF-8; as the model said it, white space included
    End end = End::Turn;   // why it is over: the model's turn, or one of the limits, or the callback said so
    std::size_t kept = 0;  // tokens that the cache still held,
    std::size_t read = 0;  // that were run behind them,
    std::size_t said = 0;  // and of the answer
    double read_seconds = 0, said_seconds = 0;
  };
  // Asks and answers. `on_text` gets the answer's bytes as they come (a character may come in parts) and stops it by
  // returning false; what was said until then counts. Only what the cache does not hold yet is run. Error where the
  // conversation no longer fits the context, and where the template does not take it; it is then as before the call.
  Reply say(std::string_view words, const std::function<bool(std::string_view bytes)>& on_text = {});
  // A new conversation with the same system message.
  void clear();

  std::span<const ChatMessage> messages() const { return messages_; }
  const Llama& model() const { return model_; }
  LlamaSession& session() { return session_; }

 private:
  std::vector<int> tokens() const;
  int find_turn_end() const;
  void answer(std::span<const float> logits, const std::function<bool(std::string_view)>& on_text, Reply& r);

  Llama model_;
  LlamaChatOptions o_;
  ChatTemplate template_;
  LlamaSession session_;
  Sampler pick_;
  std::vector<ChatMessage> messages_;
  int turn_end_ = -1;  // the control token that the template writes behind an answer
};

}  // namespace lc
