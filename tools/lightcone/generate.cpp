// lightcone generate: text from a prompt.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>

#include "command.h"
#include "commands.h"
#include "explain.h"
#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/core/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/models/llama/sampler.h"

namespace lc::tool {
namespace {

// Prints text as it comes, holding back the bytes of a character that is not complete. What a model says goes into a
// file or a pipe as it is; a terminal gets no control characters from it.
class Stream {
 public:
  void add(std::string_view bytes) {
    held_ += bytes;
    std::size_t whole = 0;
    while (whole < held_.size()) {
      const std::size_t n = utf8_length(held_, whole);
      if (n == 0 && held_.size() - whole < 4) break;  // may become a character yet
      whole += n == 0 ? 1 : n;
    }
    write(held_.substr(0, whole));
    held_.erase(0, whole);
  }
  void finish() {
    write(held_ + "\n");
    held_.clear();
  }

 private:
  void write(const std::string& text) const { write_stdout(terminal_ ? for_terminal(text) : text); }
  const bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  std::string held_;
};

struct Timing {
  double prompt = 0, decode = 0;
  std::size_t prompt_tokens = 0, decoded = 0;
};

// Bytes in memory of the files this process has mapped, but for the model's: the program, which may hold a model
// itself, libraries and compiled kernels.
double program_bytes(const std::string& model) {
  std::error_code none;
  const std::string weights = std::filesystem::canonical(model, none).string();
  std::ifstream maps("/proc/self/smaps");
  double all = 0;
  bool counts = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with("Rss:") && counts) all += 1024 * std::atof(line.c_str() + 4);
    if (line.empty() || line[0] < '0' || (line[0] > '9' && line[0] < 'a')) continue;  // no new mapping
    const std::size_t path = line.find('/');
    counts = path != line.npos && (weights.empty() || !std::string_view(line).substr(path).starts_with(weights));
  }
  return all;
}

// One line: speed, how near the memory's limit, and memory used: what the plan said, and what is no part of it.
void report(const Llama& m, const Timing& t, int threads, std::uint64_t seed, const std::string& model) {
  const double rss = peak_rss_bytes(), program = program_bytes(model);
  const double planned = static_cast<double>(m.program().plan().total_bytes());
  const double rate = t.decode > 0 ? static_cast<double>(t.decoded) / t.decode : 0;
  const double limit = host::read_bandwidth(*host::threads(threads));
  // every weight but the embedding table is read for each token; a tied table is read as the head
  const double per_token = static_cast<double>(m.bytes_per_token());
  std::fprintf(stderr,
               "prompt %zu tokens, %.1f tok/s | decode %zu tokens, %.1f tok/s, %.0f %% of %.1f GB/s | "
               "peak %s, plan %s, program%s and libraries %s | seed %llu\n",
               t.prompt_tokens, t.prompt > 0 ? static_cast<double>(t.prompt_tokens) / t.prompt : 0, t.decoded, rate,
               100 * rate * per_token / limit, limit / 1e9, human_bytes(rss).c_str(), human_bytes(planned).c_str(),
               model == "builtin" ? " with its model" : "", human_bytes(program).c_str(),
               static_cast<unsigned long long>(seed));
}

// What a text begins with. Some models mark the end of every text they encode: here it goes on.
std::vector<int> begin_text(const Llama& m, const std::string& prompt) {
  const Tokenizer& t = m.tokenizer();
  std::vector<int> ids = t.encode(prompt);
  if (t.vocabulary().add_eos && !ids.empty() && ids.back() == t.eos()) ids.pop_back();
  if (ids.empty()) throw Error("generate", "the prompt is empty, and this model has no token that begins a text");
  if (static_cast<std::int64_t>(ids.size()) > m.shape().context)
    throw Error("generate", cat("the prompt is ", ids.size(), " tokens long, which do not fit the context of ",
                                m.shape().context, ": shorten it, or ask for more with --context"));
  return ids;
}

// The words as they stand, or what the standard input holds; the last line end of that is no part of a prompt.
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
  SamplerOptions s = o.sampler;
  s.seed = o.seed ? *o.seed : std::random_device{}();
  Sampler pick(s);
  const std::string prompt = read_prompt(o.prompt);
  Progress progress;
  LlamaOptions load{.context = o.context,
                    .kv_cache = o.kv_cache,
                    .threads = o.threads,
                    .precision = o.precision,
                    .memory_limit = physical_memory(),
                    .tokenizer = o.tokenizer};
  load.progress = [&](std::string_view what, double part) { progress.show(what, part); };
  const Llama model = Llama::load(open_model(o.model, !o.copy), load);
  progress.clear();
  print_notes(model.program());
  require_tokenizer(model);
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
    std::fprintf(stderr,
                 "lightcone: note: stopped at the end of the context of %lld positions; --context asks for more\n",
                 static_cast<long long>(model.shape().context));
  if (!o.profile.empty()) {
    const Profile p = session.context().profile();
    write_file(o.profile, p.trace());
    if (!o.quiet) std::fputs(p.table(measure_limits(o.threads)).c_str(), stderr);
  }
  if (!o.quiet) report(model, t, o.threads, s.seed, o.model);
  const int signal = caught_signal();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace lc::tool
