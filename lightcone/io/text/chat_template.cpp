#include "lightcone/io/text/chat_template.h"

#include <ctime>
#include <filesystem>

#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/jinja/template.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

using io::Json;

// Returns the member chat_template: a text, or the default one in a list of named templates.
std::string of_json(const std::string& file, const ReadOptions& o) {
  Budget budget(o, file);
  const io::JsonDocument document = io::read_json(file, budget);
  const Json t = document.root()["chat_template"];
  if (t.absent()) return "";
  if (t.is(Json::Kind::String)) return std::string(t.text());
  if (!t.is(Json::Kind::Array)) throw file_error("chat template", file, "'chat_template' is neither a text nor a list");
  for (const auto& [unnamed, named] : t)
    if (named["name"].text() == "default") return std::string(named["template"].text());
  throw file_error("chat template", file, "of the templates in its list none is called 'default'");
}

ChatTemplateSource of_file(const std::string& file, const ReadOptions& o) {
  return {file.ends_with(".json") ? of_json(file, o) : read_text_file(file, 4 * jinja::kLongestTemplate), file};
}

}  // namespace

ChatTemplateSource find_chat_template(const Weights& w) {
  if (w.gguf()) {
    const auto text = w.gguf()->text("tokenizer.chat_template");
    return text ? ChatTemplateSource{*text, w.path()} : ChatTemplateSource{};
  }
  if (!w.llama2c().empty()) return {};
  const std::string folder =
      io::is_folder(w.path()) ? w.path() : std::filesystem::path(w.path()).parent_path().string();
  for (const char* name : {"chat_template.jinja", "chat_template.json", "tokenizer_config.json"}) {
    const std::string file = io::first_in(folder, std::span(&name, 1));
    if (file.empty()) continue;
    if (ChatTemplateSource found = of_file(file, w.options()); !found.text.empty()) return found;
  }
  return {};
}

ChatTemplateSource read_chat_template(const std::string& file) {
  ChatTemplateSource found = of_file(file, {});
  if (found.text.empty()) throw file_error("chat template", file, "it holds no chat template");
  return found;
}

ChatTemplate::ChatTemplate(const ChatTemplateSource& source, const Tokenizer* tokens)
    : template_(std::make_shared<const jinja::Template>(source.text, source.file)) {
  if (!tokens) return;
  const std::vector<std::string>& pieces = tokens->vocabulary().pieces;
  if (tokens->bos() >= 0) bos_ = pieces[static_cast<std::size_t>(tokens->bos())];
  if (tokens->eos() >= 0) eos_ = pieces[static_cast<std::size_t>(tokens->eos())];
}

std::string ChatTemplate::apply(std::span<const ChatMessage> messages, const ChatTemplateOptions& o) const {
  using jinja::Value;
  const auto variables = [&](jinja::Meter& m) {
    std::size_t bytes = o.variables.size();
    for (const ChatMessage& message : messages) bytes += message.role.size() + message.content.size() + 100;
    m.allow(bytes * jinja::Limits().bytes_each_input);
    const auto text = [&](std::string_view s) { return jinja::text(m, std::string(s)); };
    std::vector<Value> all;
    for (const ChatMessage& message : messages)
      all.push_back(jinja::dict(m, {{text("role"), text(message.role)}, {text("content"), text(message.content)}}));
    jinja::Variables v{{"messages", jinja::list(m, std::move(all))},
                       {"add_generation_prompt", {o.generation_prompt}},
                       {"tools", {jinja::None{}}},
                       {"documents", {jinja::None{}}}};
    if (!bos_.empty()) v.emplace_back("bos_token", text(bos_));
    if (!eos_.empty()) v.emplace_back("eos_token", text(eos_));
    if (o.variables.empty()) return v;
    Budget budget({}, "variables");
    const io::JsonDocument more(o.variables, "variables", budget);
    if (!more.root().is(Json::Kind::Object)) throw Error("chat template", "the variables are no JSON object");
    for (const auto& [name, value] : more.root()) v.emplace_back(std::string(name), jinja::from_json(m, value));
    return v;
  };
  return template_->render(variables, o.now.value_or(std::time(nullptr)));
}

}  // namespace lc
