// Chat templates: how a model wants a conversation written down. Checkpoints bring them as Jinja; they are run as
// transformers' apply_chat_template() runs them (io/jinja/template.h says which part of Jinja there is).
//
// A template comes with a file, so it is not trusted: it cannot read or change anything but what it is given, and one
// that loops for ever, makes endless text or calls itself without end is an Error, as is one that cannot be read. Its
// sentences name the template's line.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

namespace jinja {
class Template;
}

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"; templates may know others
  std::string content;
};

struct ChatOptions {
  bool generation_prompt = true;  // ends with what an answer begins with, for the model to go on
  // Further variables, a JSON object: {"enable_thinking": false, "tools": [...]}. "messages" in it replaces the others,
  // for messages that hold more than a role and a text.
  std::string variables = {};
  std::optional<std::time_t> now = {};  // for templates that write the date; default: the clock
};

// A template's text and where it was found; both "" where there is none.
struct ChatTemplateSource {
  std::string text, file;
};
// What a checkpoint brings: of a GGUF file tokenizer.chat_template; of a folder chat_template.jinja, or what its
// chat_template.json or tokenizer_config.json hold (of several the one called "default").
ChatTemplateSource find_chat_template(const Weights& w);
// The same from a file: text, or JSON that has a chat_template.
ChatTemplateSource read_chat_template(const std::string& file);

class ChatTemplate {
 public:
  // Error where the text is no template. `tokens`: whose bos_token and eos_token the template writes; may be null.
  explicit ChatTemplate(const ChatTemplateSource& source, const Tokenizer* tokens = nullptr);
  explicit ChatTemplate(std::string_view text) : ChatTemplate({std::string(text), "template"}) {}

  // The conversation as the model reads it, for Tokenizer::encode(text, false, true): the template itself writes <s>,
  // and control tokens in its text are tokens. Those in the words of a message are tokens as well, as in transformers:
  // take them out of words from strangers.
  std::string apply(std::span<const ChatMessage> messages, const ChatOptions& o = {}) const;

 private:
  std::shared_ptr<const jinja::Template> template_;
  std::string bos_, eos_;
};

}  // namespace lc
