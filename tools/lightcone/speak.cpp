#include "speak.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "command.h"
#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/language/language_model.h"
#include "lightcone/models/llama/llama.h"

namespace lc::tool {
namespace {

// True for a GGUF file of Llama's family with a rotation that it has, and without experts.
bool is_llama_gguf(const GgufFile& g) {
  const std::string type = g.text("general.architecture").value_or("");
  const std::string scaling = g.text(type + ".rope.scaling.type").value_or("none");
  if (g.metadata.contains(type + ".expert_count") || (scaling != "none" && scaling != "linear")) return false;
  return type == "llama" || type == "mistral" || type == "qwen2" || type == "qwen3";
}

}  // namespace

bool is_llama(const Weights& w) {
  if (w.gguf()) return is_llama_gguf(*w.gguf());
  if (!w.llama2c().empty() || w.config_json().empty()) return true;
  const ConfigFile config(w);
  const std::string type = config.text("model_type");
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.is_object(key)) continue;
    const ConfigFile scaling = config.section(key);
    const std::string kind = scaling.text("rope_type", scaling.text("type", "default"));
    if (kind != "default" && kind != "linear" && kind != "llama3") return false;
  }
  if (config.flag("use_sliding_window", false)) return false;  // windows of some layers
  return type.empty() || type == "llama" || type == "mistral" || type == "qwen2" || type == "qwen3";
}

namespace {

std::shared_ptr<const llm::ProgramModel> opened(const SpeakOptions& o, const std::optional<Collectives>& ranks,
                                                Progress& progress) {
  const std::shared_ptr<backends::gpu::GpuDevice> device = open_device(o.device);
  const Weights weights = open_model(o.model, !o.copy);
  const auto with = [&](auto load) {
    load.context = o.context, load.kv_cache = o.kv_cache, load.threads = o.threads, load.precision = o.precision;
    load.compiler = compiler_for(device, {.threads = o.threads, .precision = o.precision});
    load.memory_limit = device ? device->limits().memory : physical_memory();
    load.tokenizer = o.tokenizer, load.ranks = ranks;
    load.progress = [&](std::string_view what, double part) { progress.show(what, part); };
    return load;
  };
  if (is_llama(weights)) return std::make_shared<const Llama>(Llama::load(weights, with(LlamaOptions())));
  return std::make_shared<const LanguageModel>(LanguageModel::load(weights, with(LanguageModelOptions())));
}

}  // namespace

std::shared_ptr<const llm::ProgramModel> load_model(const SpeakOptions& o, const std::optional<Collectives>& ranks) {
  Progress progress;
  std::shared_ptr<const llm::ProgramModel> model = opened(o, ranks, progress);
  progress.clear();
  print_notes(model->program());
  if (o.context > model->trained_length())
    note(str_cat("--context ", o.context, " is beyond the ", model->trained_length(),
                 " positions that the model was trained for: behind them it says what nobody taught it"));
  if (!model->has_tokenizer())
    throw Error("tokenizer",
                "the checkpoint holds no tokenizer and none lies beside it: name one with --tokenizer FILE");
  return model;
}

std::optional<Collectives> ranks_of(const SpeakOptions& o, double timeout_s) {
  const llm::SamplerOptions& s = o.sampler;
  return join_ranks(o.mesh,
                    str_cat("-n ", o.max_tokens, " --temperature ", s.temperature, " --top-k ", s.top_k, " --top-p ",
                            s.top_p, " --min-p ", s.min_p, " --repetition-penalty ", s.repetition_penalty,
                            " --context ", o.context, " --kv-cache ", name(o.kv_cache), " --precision ",
                            static_cast<int>(o.precision), o.seed ? str_cat(" --seed ", *o.seed) : ""),
                    timeout_s);
}

llm::SamplerOptions seeded(const SpeakOptions& o, const std::optional<Collectives>& ranks) {
  llm::SamplerOptions s = o.sampler;
  s.seed = o.seed ? *o.seed : std::random_device{}();
  if (ranks) s.seed = std::strtoull(ranks->text_of_first(str_cat(s.seed)).c_str(), nullptr, 10);
  return s;
}

void note(const std::string& what) {
  if (!is_silent()) std::fprintf(stderr, "lightcone: note: %s\n", printable(what, 2000).c_str());
}

Stream::Stream() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

void Stream::add(std::string_view bytes) {
  held_ += bytes;
  std::size_t whole = 0;
  while (whole < held_.size()) {
    const std::size_t n = utf8_length(held_, whole);
    if (n == 0 && held_.size() - whole < 4) break;  // may become a character with more bytes
    whole += n == 0 ? 1 : n;
  }
  write(held_.substr(0, whole));
  held_.erase(0, whole);
}

void Stream::finish() {
  write(held_ + "\n");
  held_.clear();
}

void Stream::write(const std::string& text) const { write_stdout(terminal_ ? for_terminal(text) : text); }

namespace {

// Returns the resident bytes of the files mapped by this process except the model's: the program, which may contain a
// model, libraries and compiled kernels.
double program_bytes(const std::string& model) {
  std::error_code none;
  const std::string weights = std::filesystem::canonical(model, none).string();
  std::ifstream maps("/proc/self/smaps");
  double all = 0;
  bool counts = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with("Rss:") && counts) all += 1024 * static_cast<double>(std::atoll(line.c_str() + 4));
    if (line.empty() || line[0] < '0' || (line[0] > '9' && line[0] < 'a')) continue;  // not the first line of a mapping
    const std::size_t path = line.find('/');
    counts = path != line.npos && (weights.empty() || !std::string_view(line).substr(path).starts_with(weights));
  }
  return all;
}

}  // namespace

void report(const llm::ProgramModel& m, const Timing& t, const SpeakOptions& o, std::uint64_t seed) {
  if (is_silent()) return;
  const double rss = peak_rss_bytes(), program = program_bytes(o.model);
  const std::string planned = human_bytes(static_cast<double>(m.program().plan().total_bytes()));
  const double rate = t.decode > 0 ? static_cast<double>(t.decoded) / t.decode : 0;
  std::string line = formatted("prompt %zu tokens, %.1f tok/s | decode %zu tokens, %.1f tok/s", t.prompt_tokens,
                               t.prompt > 0 ? static_cast<double>(t.prompt_tokens) / t.prompt : 0, t.decoded, rate);
  if (o.device.is_cpu()) {
    const double limit = backends::cpu::read_bandwidth(*backends::cpu::threads(o.threads));
    // each token reads every weight but the embedding table; a tied table is read as the head
    const double per_token = static_cast<double>(m.bytes_per_token());
    line += formatted(", %.0f %% of %.1f GB/s | peak %s, plan %s, program%s and libraries %s",
                      100 * rate * per_token / limit, limit / 1e9, human_bytes(rss).c_str(), planned.c_str(),
                      o.model == "builtin" ? " with its model" : "", human_bytes(program).c_str());
  } else {
    line += str_cat(" | on ", printable(m.program().device()->name(), 200), ": plan ", planned, " | here: peak ",
                    human_bytes(rss));
  }
  std::fputs(str_cat(line, " | seed ", seed, "\n").c_str(), stderr);
}

}  // namespace lc::tool
