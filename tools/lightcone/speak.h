// Functions of the commands that generate text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "commands.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/llm/program_model.h"
#include "ranks.h"

namespace lc::tool {

// True for a checkpoint that Llama opens: one without a config.json, or of its family with a rotation that it has.
bool is_llama(const Weights& w);
// Loads the model and shows progress: files of GGUF and llama2.c and the Llama family as Llama, any other language
// model with a config.json as LanguageModel; of several ranks, this one's part of it. Throws Error, which names
// --tokenizer, if the model has none.
std::shared_ptr<const llm::ProgramModel> load_model(const SpeakOptions& o, const std::optional<Collectives>& ranks);
// The ranks that --mesh asks for, which must have been given the same options.
std::optional<Collectives> ranks_of(const SpeakOptions& o, double timeout_s);
// With a random seed if none was given, the same on all ranks.
llm::SamplerOptions seeded(const SpeakOptions& o, const std::optional<Collectives>& ranks);
// Prints a sentence on the standard error.
void note(const std::string& what);

// Prints text as it comes, and holds back the bytes of an incomplete character. Files and pipes get the model's bytes
// as they are; a terminal gets no control characters.
class Stream {
 public:
  Stream();
  void add(std::string_view bytes);
  void finish();  // ends the line

 private:
  void write(const std::string& text) const;
  const bool terminal_;
  std::string held_;
};

struct Timing {
  double prompt = 0, decode = 0;
  std::size_t prompt_tokens = 0, decoded = 0;
};
// Prints one line: the speed, on the CPU relative to the memory's limit, and the memory used: the plan's, and the rest.
void report(const llm::ProgramModel& m, const Timing& t, const SpeakOptions& o, std::uint64_t seed);

}  // namespace lc::tool
