// lightcone chat: a conversation on a terminal or from a pipe.
#include "lightcone/llm/chat.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include <nlohmann/json.hpp>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "ranks.h"
#include "speak.h"

namespace lc::tool {
namespace {

// Reads lines of the standard input. A signal interrupts the wait for one.
class Lines {
 public:
  // Returns nullopt at the end of the input, or if a signal came instead of a line.
  std::optional<std::string> next() {
    for (;;) {
      if (const std::size_t end = held_.find('\n'); end != held_.npos) return taken(end, 1);
      if (!wait_for_input(STDIN_FILENO)) return {};
      char bytes[4096];
      const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw Error("read", str_cat("cannot read the standard input: ", std::strerror(errno)));
      if (n > 0) {
        held_.append(bytes, static_cast<std::size_t>(n));
        continue;
      }
      if (held_.empty()) return {};
      return taken(held_.size(), 0);  // the last line may lack a line end
    }
  }

 private:
  std::string taken(std::size_t end, std::size_t more) {
    std::string line = held_.substr(0, end);
    held_.erase(0, end + more);
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  std::string held_;
};

// Returns NAME=VALUE pairs as JSON, where each VALUE is JSON or a text.
std::string as_json(const std::vector<std::string>& variables) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const std::string& v : variables) {
    const std::size_t equals = v.find('=');
    if (equals == v.npos || equals == 0) throw Error("--set", str_cat(in_quotes(v), " is not NAME=VALUE"));
    const std::string value = v.substr(equals + 1);
    auto parsed = nlohmann::ordered_json::parse(value, nullptr, false);
    all[v.substr(0, equals)] = parsed.is_discarded() ? nlohmann::ordered_json(value) : parsed;
  }
  return all.empty() ? "" : all.dump();
}

class Conversation {
 public:
  Conversation(const ChatCommand& o, const std::shared_ptr<const llm::ProgramModel>& model,
               const std::optional<Collectives>& ranks)
      : o_(o),
        model_(*model),
        ranks_(ranks),
        terminal_(!ranks && ::isatty(STDIN_FILENO) == 1),
        sampler_(seeded(o, ranks)),
        chat_(model, options(*model)) {}
  int run();

 private:
  llm::ChatOptions options(const llm::ProgramModel& model) const;
  std::optional<std::string> question();
  std::optional<std::string> asked();
  bool command(const std::string& line);
  bool ask(const std::string& words);
  void greet() const;
  void say(const char* text) const {
    if (terminal_) std::fputs(text, stderr), std::fflush(stderr);
  }

  const ChatCommand& o_;
  const llm::ProgramModel& model_;
  const std::optional<Collectives> ranks_;
  const bool terminal_;
  const llm::SamplerOptions sampler_;
  llm::Chat chat_;
  Lines lines_;
  Timing all_;
  bool over_ = false;
};

llm::ChatOptions Conversation::options(const llm::ProgramModel& model) const {
  llm::ChatOptions c{
      .system = o_.system, .sampler = sampler_, .max_tokens = o_.max_tokens, .variables = as_json(o_.variables)};
  if (!o_.chat_template.empty()) c.chat_template = read_chat_template(o_.chat_template);
  else if (model.chat_template().text.empty())
    throw Error("chat",
                "this model brings no chat template: name one with --template FILE, or continue a text with 'lightcone "
                "generate'");
  return c;
}

void Conversation::greet() const {
  if (!terminal_) return;
  std::fprintf(stderr, "%s, %lld positions. /help lists commands, Ctrl-D ends.\n", printable(o_.model, 200).c_str(),
               static_cast<long long>(chat_.model().context_length()));
}

// Returns the next question, or nullopt at the end. On a terminal Ctrl-C discards the lines typed so far.
std::optional<std::string> Conversation::question() {
  std::string all;
  for (;;) {
    say(all.empty() ? "> " : ". ");
    std::optional<std::string> line = lines_.next();
    if (!line && caught_signal() == SIGINT && terminal_) {
      forget_signal();
      say("\n(Ctrl-D ends the chat)\n");
      all.clear();
      continue;
    }
    if (!line) return {};
    const bool goes_on = terminal_ && line->ends_with('\\');
    if (goes_on) line->back() = '\n';
    all += *line;
    if (!goes_on) return all;
  }
}

// The question, which the first rank reads for all: "?" and its words, or "" at the end.
std::optional<std::string> Conversation::asked() {
  if (!ranks_) return question();
  std::string words;
  if (!is_silent())
    if (const std::optional<std::string> read = question()) words = "?" + *read;
  words = ranks_->text_of_first(std::move(words));
  return words.empty() ? std::nullopt : std::optional(words.substr(1));
}

// Returns true if the line was a command for the chat, and not for the model.
bool Conversation::command(const std::string& line) {
  if (line == "/clear") chat_.clear(), say("(a new conversation)\n");
  else if (line == "/exit" || line == "/quit" || line == "/bye") over_ = true;
  else if (line == "/help")
    say("/clear  begins a new conversation\n/exit   ends the chat, as Ctrl-D does\nCtrl-C stops an answer. A line that "
        "ends in \\ goes on in the next.\n");
  else if (terminal_ && line.starts_with("/") && line.find_first_of(" /", 1) == line.npos)
    say("(there is no such command; /help lists them)\n");
  else return false;
  return true;
}

// Asks the model, and prints the answer as it comes. Returns false if the chat cannot go on.
bool Conversation::ask(const std::string& words) try {
  Stream out;
  bool begun = false;
  const llm::Chat::Reply r = chat_.say(words, [&](std::string_view bytes) {
    if (!begun) {  // space before the first word is of no use to a reader
      const std::size_t first = bytes.find_first_not_of(" \n\t");
      bytes.remove_prefix(first == bytes.npos ? bytes.size() : first);
      begun = !bytes.empty();
    }
    out.add(bytes);
    return caught_signal() == 0;
  });
  out.finish();
  all_.prompt += r.read_seconds, all_.decode += r.said_seconds;
  all_.prompt_tokens += r.read, all_.decoded += r.said;
  if (r.end == llm::Chat::End::Context)
    note(str_cat("the answer ends with the context of ", chat_.model().context_length(),
                 " positions; /clear begins anew, --context asks for more"));
  if (r.end == llm::Chat::End::MaxTokens) note(str_cat("the answer ends after ", r.said, " tokens (--max-tokens)"));
  say("\n");
  return true;
} catch (const Error& e) {
  const Error wrong = e.op() != "chat" ? e : Error("chat", e.problem() + " (/clear, --context N)");
  if (e.op() == "write" || !terminal_) throw wrong;
  std::fprintf(stderr, "lightcone: %s\n", printable(wrong.what(), 2000).c_str());
  return true;
}

int Conversation::run() {
  greet();
  if (!ranks_) catch_signals();  // several ranks are stopped by what has started them
  while (!over_) {
    const std::optional<std::string> words = asked();
    if (!words) break;
    if (words->find_first_not_of(" \t\n") == words->npos || command(*words)) continue;
    if (!ask(*words)) break;
    if (caught_signal() == SIGINT && terminal_) forget_signal();  // it interrupted the answer only
    if (caught_signal() != 0) break;
  }
  const int signal = caught_signal();
  say(over_ ? "" : "\n");
  if (!o_.quiet && all_.prompt_tokens > 0) report(model_, all_, o_, sampler_.seed);
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace

int chat(const ChatCommand& o) {
  constexpr double kTimeOut = 7 * 24 * 3600;  // other ranks wait so long for a question
  const std::optional<Collectives> ranks = ranks_of(o, kTimeOut);
  const std::shared_ptr<const llm::ProgramModel> model = load_model(o, ranks);
  return Conversation(o, model, ranks).run();
}

}  // namespace lc::tool
