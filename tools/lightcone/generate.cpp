// lightcone generate: text from a prompt.
#include <cstdio>
#include <iostream>
#include <iterator>

#include "command.h"
#include "commands.h"
#include "explain.h"
#include "lightcone/base/error.h"
#include "lightcone/io/utf8.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/models/llama/sampler.h"
#include "speak.h"

namespace lc::tool {
namespace {

// Returns the tokens of the prompt. Some models mark the end of every text that they encode; here the text continues.
std::vector<int> begin_text(const Llama& m, const std::string& prompt) {
  const Tokenizer& t = m.tokenizer();
  std::vector<int> ids = t.encode(prompt);
  if (t.vocabulary().add_eos && !ids.empty() && ids.back() == t.eos()) ids.pop_back();
  if (ids.empty()) throw Error("generate", "the prompt is empty, and this model has no token that begins a text");
  if (static_cast<std::int64_t>(ids.size()) > m.shape().context)
    throw Error("generate", str_cat("the prompt is ", ids.size(), " tokens long, which do not fit the context of ",
                                    m.shape().context, ": shorten it, or ask for more with --context"));
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

}  // namespace

int generate(const GenerateOptions& o) {
  const SamplerOptions s = seeded(o);
  Sampler pick(s);
  const std::string prompt = read_prompt(o.prompt);
  const Llama model = load_model(o);
  const std::vector<int> ids = begin_text(model, prompt);
  LlamaSession session(model);
  Timing t;
  t.prompt_tokens = ids.size();
  catch_signals();
  double begin = now();
  std::span<const float> logits = session.feed(ids);
  t.prompt = now() - begin;
  if (!o.profile.empty()) session.context().profile(true);
  Stream out;
  out.add(model.tokenizer().decode(ids));
  bool full = false;
  begin = now();
  for (int n = 0; n < o.max_tokens && caught_signal() == 0; ++n) {
    const int id = pick(logits, session.tokens());
    if (model.ends(id)) break;
    out.add(model.tokenizer().piece(id));
    full = session.room() == 0 && n + 1 < o.max_tokens;
    if (full || n + 1 == o.max_tokens) break;
    logits = session.feed(id);
    ++t.decoded;
  }
  t.decode = now() - begin;
  out.finish();
  if (full)
    note(
        str_cat("stopped at the end of the context of ", model.shape().context, " positions; --context asks for more"));
  if (!o.profile.empty()) {
    const Profile p = session.context().profile();
    write_file(o.profile, p.trace());
    if (!o.quiet) std::fputs(p.table(measure_limits(o.threads, o.device)).c_str(), stderr);
  }
  if (!o.quiet) report(model, t, o, s.seed);
  const int signal = caught_signal();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace lc::tool
