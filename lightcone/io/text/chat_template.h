// Chat templates: the format in which a model expects a conversation. Checkpoints contain them as Jinja templates,
// which are rendered as by transformers' apply_chat_template(). io/jinja/template.h lists the supported part of Jinja.
//
// A template comes from a file and is not trusted: it can read its variables only and cannot change anything. A
// template that loops forever, makes endless text or recurses without end is an Error, as is one with a syntax error.
// Errors name the line of the template.
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

// A message of a conversation.
struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"; templates may use others
  std::string content;
};

// Options of ChatTemplate::apply().
struct ChatTemplateOptions {
  bool generation_prompt = true;  // ends with the beginning of an answer, for the model to continue
  // Further variables, a JSON object: {"enable_thinking": false, "tools": [...]}. A member "messages" replaces the
  // given messages, which allows messages with more than a role and a text.
  std::string variables = {};
  std::optional<std::time_t> now = {};  // for templates that write the date; default: the current time
};

// The text of a template and the file it is from; both "" if there is none.
struct ChatTemplateSource {
  std::string text, file;
};
// Finds the template of a checkpoint: tokenizer.chat_template of a GGUF file; in a folder chat_template.jinja, or the
// template in chat_template.json or tokenizer_config.json (the one called "default" if there are several).
ChatTemplateSource find_chat_template(const Weights& w);
// Reads a template from a file: text, or JSON with a member chat_template. Throws Error if there is none.
ChatTemplateSource read_chat_template(const std::string& file);

// A parsed chat template. Copies share it.
class ChatTemplate {
 public:
  // Throws Error if the text is not a valid template. `tokens` provides the bos_token and eos_token that the template
  // writes; it may be null.
  explicit ChatTemplate(const ChatTemplateSource& source, const Tokenizer* tokens = nullptr);
  // The same for a text without bos_token and eos_token.
  explicit ChatTemplate(std::string_view text) : ChatTemplate({std::string(text), "template"}) {}

  // Formats a conversation for Tokenizer::encode(text, false, true): the template itself writes <s>, and control tokens
  // in its text become tokens. As in transformers, control tokens in the contents of messages become tokens as well;
  // remove them from untrusted input. Throws Error if the template rejects the conversation or exceeds its limits.
  std::string apply(std::span<const ChatMessage> messages, const ChatTemplateOptions& o = {}) const;

 private:
  std::shared_ptr<const jinja::Template> template_;
  std::string bos_, eos_;
};

}  // namespace lc
