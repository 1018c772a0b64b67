// lightcone generate: text from a prompt.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <optional>

#include "command.h"
#include "commands.h"
#include "explain.h"
#include "lightcone/base/error.h"
#include "lightcone/io/utf8.h"
#include "lightcone/llm/generate.h"
#include "ranks.h"
#include "speak.h"

namespace lc::tool {
namespace {

// Returns the tokens of the prompt.
std::vector<int> begin_text(const llm::Model& m, const std::string& prompt) {
  std::vector<int> ids = llm::prompt_tokens(m.tokenizer(), prompt);
  if (ids.empty()) throw Error("generate", "the prompt is empty, and this model has no token that begins a text");
  if (static_cast<std::int64_t>(ids.size()) > m.context_length())
    throw Error("generate", str_cat("the prompt is ", ids.size(), " tokens long, which do not fit the context of ",
                                    m.context_length(), ": shorten it, or ask for more with --context"));
  return ids;
}

// Returns the words, or the standard input for "-", without its last line end.
std::string read_prompt(const std::vector<std::string>& words) {
  std::string prompt;
  for (const std::string& w : words) prompt += (&w == &words.front() ? "" : " ") + w;
  if (prompt == "-") {
    prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
    if (prompt.ends_with('\n')) prompt.pop_back();
    if (prompt.ends_with('\r')) prompt.pop_back();
  }
  require_utf8(prompt, "the prompt");
  return prompt;
}

// The prompt, which is the first rank's where there are several: it alone has a standard input.
std::string prompt_of(const GenerateOptions& o, const std::optional<Collectives>& ranks) {
  if (!ranks) return read_prompt(o.prompt);
  return ranks->text_of_first(is_silent() ? "" : read_prompt(o.prompt));
}

}  // namespace

int generate(const GenerateOptions& o) {
  constexpr double kTimeOut = 600;  // ranks do not read a model equally fast
  const std::optional<Collectives> ranks = ranks_of(o, kTimeOut);
  const llm::SamplerOptions s = seeded(o, ranks);
  llm::Sampler pick(s);
  const std::string prompt = prompt_of(o, ranks);
  if (is_seq2seq(o.model)) {
    if (ranks) throw Error("--mesh", "an encoder-decoder runs on one rank");
    return answer(o, prompt);
  }
  const std::shared_ptr<const llm::ProgramModel> loaded = load_model(o, ranks);
  const llm::ProgramModel& model = *loaded;
  const std::vector<int> ids = begin_text(model, prompt);
  const std::unique_ptr<llm::ProgramDecoder> decoder = model.session();
  llm::ProgramDecoder& session = *decoder;
  Timing t;
  t.prompt_tokens = ids.size();
  if (!ranks) catch_signals();  // several ranks are stopped by what has started them
  double begin = now();
  const std::span<const float> logits = session.feed(ids);
  t.prompt = now() - begin;
  if (!o.profile.empty()) session.context().profile(true);
  Stream out;
  out.add(model.tokenizer().decode(ids));
  const auto print = [&](int id) {
    out.add(model.tokenizer().piece(id));
    return caught_signal() == 0;
  };
  llm::Generated text;
  begin = now();
  if (caught_signal() == 0)
    text =
        llm::generate(session, pick, logits,
                      {.max_tokens = o.max_tokens, .ends = [&](int id) { return model.ends(id); }, .on_token = print});
  t.decode = now() - begin;
  t.decoded = text.steps;
  out.finish();
  if (text.end == llm::End::Context)
    note(str_cat("stopped at the end of the context of ", model.context_length(),
                 " positions; --context asks for more"));
  if (!o.profile.empty()) {
    const Profile p = session.context().profile();
    if (!is_silent()) write_file(o.profile, p.trace());
    if (!o.quiet && !is_silent()) std::fputs(p.table(measure_limits(o.threads, o.device)).c_str(), stderr);
  }
  if (!o.quiet) report(model, t, o, s.seed);
  const int signal = caught_signal();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace lc::tool
