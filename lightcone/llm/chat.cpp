#include "lightcone/llm/chat.h"

#include <algorithm>
#include <chrono>

#include "lightcone/io/utf8.h"

namespace lc::llm {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

const ChatTemplateSource& chosen(const Model& m, const ChatOptions& o) {
  if (!o.chat_template.text.empty()) return o.chat_template;
  if (m.chat_template().text.empty())
    throw Error("chat",
                "the checkpoint brings no chat template: give one in llm::ChatOptions::chat_template, or continue "
                "texts with a decoder");
  return m.chat_template();
}

// Replaces invalid bytes by U+FFFD. A model may generate bytes that are not a character, or be stopped inside of one,
// but the next prompt has to be UTF-8.
std::string as_utf8(std::string_view s) {
  std::string out;
  for (std::size_t at = 0; at < s.size();) {
    const std::size_t n = utf8_length(s, at);
    if (n > 0) out += s.substr(at, n);
    else utf8_append(out, 0xFFFD);
    at += std::max<std::size_t>(1, n);
  }
  return out;
}

}  // namespace

Chat::Chat(std::shared_ptr<const Model> model, const ChatOptions& o)
    : model_(std::move(model)),
      o_(o),
      template_(chosen(*model_, o_), &model_->tokenizer()),
      decoder_(model_->decoder()),
      pick_(o_.sampler) {
  clear();
  turn_end_ = find_turn_end();
}

void Chat::clear() {
  messages_.clear();
  if (!o_.system.empty()) messages_.push_back({"system", o_.system});
}

std::vector<int> Chat::tokens() const {
  const std::string text = template_.apply(messages_, {.variables = o_.variables});
  std::vector<int> ids = model_->tokenizer().encode(text, false, true);
  if (ids.empty()) throw Error("chat", "the template makes no text of this conversation");
  return ids;
}

// Finds the token that ends a turn by rendering an example; -1 if there is none. Files often declare only the token
// that ends a text, and the template uses another one to end a turn.
int Chat::find_turn_end() const try {
  const std::string answer = "zq9";
  const std::vector<ChatMessage> example{{"user", "a"}, {"assistant", answer}};
  const std::string text = template_.apply(example, {.generation_prompt = false, .variables = o_.variables});
  const std::size_t at = text.rfind(answer);
  const std::size_t behind = at == text.npos ? at : text.find_first_not_of(" \n\t", at + answer.size());
  if (behind == text.npos) return -1;
  const Vocabulary& v = model_->tokenizer().vocabulary();
  const std::vector<int> ids = model_->tokenizer().encode(std::string_view(text).substr(behind), false, true);
  if (ids.empty() || v.types.empty()) return -1;
  const Vocabulary::Type type = v.types[static_cast<std::size_t>(ids[0])];
  return type == Vocabulary::Type::Control || type == Vocabulary::Type::UserDefined ? ids[0] : -1;
} catch (const Error&) {
  return -1;  // the template rejects this conversation
}

Chat::Reply Chat::say(std::string_view words, const std::function<bool(std::string_view)>& on_text) {
  require_utf8(words, "the words");
  messages_.push_back({"user", std::string(words)});
  Reply r;
  try {
    const std::vector<int> ids = tokens();
    const std::int64_t context = decoder_->context_length();
    if (static_cast<std::int64_t>(ids.size()) > context)
      throw Error("chat", str_cat("the conversation is ", ids.size(), " tokens long, which do not fit the context of ",
                                  context, " positions: begin a new one, or load the model with a larger context"));
    const std::span<const int> held = decoder_->tokens();
    r.kept = static_cast<std::size_t>(std::mismatch(held.begin(), held.end(), ids.begin(), ids.end() - 1).first -
                                      held.begin());
    r.read = ids.size() - r.kept;
    decoder_->truncate(r.kept);
    const double begin = now();
    const std::span<const float> logits = decoder_->feed(std::span(ids).subspan(r.kept));
    r.read_seconds = now() - begin;
    answer(logits, on_text, r);
  } catch (...) {
    messages_.pop_back();
    throw;
  }
  r.text = as_utf8(r.text);
  messages_.push_back({"assistant", r.text});
  return r;
}

void Chat::answer(std::span<const float> logits, const std::function<bool(std::string_view)>& on_text, Reply& r) {
  const double begin = now();
  const auto add = [&](int id) {
    const std::string bytes = model_->tokenizer().piece(id);
    r.text += bytes;
    return !on_text || on_text(bytes);
  };
  const Generated g = generate(*decoder_, pick_, logits,
                               {.max_tokens = o_.max_tokens,
                                .ends = [&](int id) { return id == turn_end_ || model_->ends(id); },
                                .on_token = add});
  r.end = g.end, r.said = g.tokens.size();
  r.said_seconds = now() - begin;
}

}  // namespace lc::llm
