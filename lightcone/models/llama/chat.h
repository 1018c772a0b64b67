// LlamaChat: a conversation with a model, formatted by the model's chat template.
//
//   LlamaChat chat(Llama::load("tinyllama.gguf"), {.system = "Be brief."});
//   chat.say("Who was Ada Lovelace?", [](std::string_view piece) { return std::cout << piece << std::flush, true; });
//   chat.say("When did she live?");   // .text; the cache still holds the earlier messages
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

// Options of LlamaChat.
struct LlamaChatOptions {
  std::string system = {};  // the system message; "": none, so that a template with its own default uses that
  SamplerOptions sampler = {};
  int max_tokens = 0;                     // limit of tokens per answer; 0: the room left in the context
  std::string variables = {};             // further variables of the template: see ChatOptions
  ChatTemplateSource chat_template = {};  // default: the model's own
};

// A conversation with one model. It owns a LlamaSession, of which the cache is reused from message to message.
class LlamaChat {
 public:
  // Throws Error if there is no template or no tokenizer, or if the template cannot be parsed.
  explicit LlamaChat(Llama model, const LlamaChatOptions& o = {});

  // The reason why an answer ended: the model ended its turn, one of the limits was reached, or the callback stopped
  // it.
  enum class End : std::uint8_t { Turn, MaxTokens, Context, Stopped };
  // An answer, with the numbers of tokens and the times of the prompt and of the answer.
  struct Reply {
    std::string text;      // UTF-8, as the model generated it, including white space
    End end = End::Turn;   // why the answer ended
    std::size_t kept = 0;  // prompt tokens that the cache already held
    std::size_t read = 0;  // prompt tokens that were run
    std::size_t said = 0;  // tokens of the answer
    double read_seconds = 0, said_seconds = 0;
  };
  // Adds a message of the user and generates the answer. `on_text` receives the bytes of the answer as they are
  // generated (a character may arrive in parts) and stops the answer by returning false; the text so far is kept. Only
  // tokens that the cache does not hold yet are run. Throws Error if the conversation no longer fits the context or if
  // the template rejects it; the conversation is then unchanged.
  Reply say(std::string_view words, const std::function<bool(std::string_view bytes)>& on_text = {});
  // Begins a new conversation with the same system message.
  void clear();

  std::span<const ChatMessage> messages() const { return messages_; }  // the messages so far, the system message first
  const Llama& model() const { return model_; }                        // the model of the conversation
  LlamaSession& session() { return session_; }                         // the session with the cache

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
  int turn_end_ = -1;  // the control token that the template writes after an answer; -1: none
};

}  // namespace lc
