// Chat: a conversation with a model, formatted by the model's chat template.
//
//   llm::Chat chat(Llama::load("tinyllama.gguf"), {.system = "Be brief."});
//   chat.say("Who was Ada Lovelace?", [](std::string_view piece) { return std::cout << piece << std::flush, true; });
//   chat.say("When did she live?");   // .text; the cache still holds the earlier messages
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/text/chat_template.h"
#include "lightcone/llm/generate.h"
#include "lightcone/llm/model.h"
#include "lightcone/llm/sampler.h"

namespace lc::llm {

// Options of Chat.
struct ChatOptions {
  std::string system = {};  // the system message; "": none, so that a template with its own default uses that
  SamplerOptions sampler = {};
  int max_tokens = 0;                     // limit of tokens per answer; 0: the room left in the context
  std::string variables = {};             // further variables of the template: see ChatTemplateOptions
  ChatTemplateSource chat_template = {};  // default: the model's own
};

// A conversation with one model. It owns a Decoder, of which the cache is reused from message to message.
class Chat {
 public:
  // Throws Error if there is no template or no tokenizer, or if the template cannot be parsed.
  explicit Chat(std::shared_ptr<const Model> model, const ChatOptions& o = {});
  // The same for a model by value, such as a Llama, which is a handle.
  template <std::derived_from<Model> M>
  explicit Chat(M model, const ChatOptions& o = {}) : Chat(std::make_shared<const M>(std::move(model)), o) {}

  using End = llm::End;  // the reason why an answer ended
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
  const Model& model() const { return *model_; }                       // the model of the conversation
  Decoder& decoder() { return *decoder_; }                             // the decoder with the cache

 private:
  std::vector<int> tokens() const;
  int find_turn_end() const;
  void answer(std::span<const float> logits, const std::function<bool(std::string_view)>& on_text, Reply& r);

  std::shared_ptr<const Model> model_;
  ChatOptions o_;
  ChatTemplate template_;
  std::unique_ptr<Decoder> decoder_;
  Sampler pick_;
  std::vector<ChatMessage> messages_;
  int turn_end_ = -1;  // the control token that the template writes after an answer; -1: none
};

}  // namespace lc::llm
