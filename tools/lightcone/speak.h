// What the commands share that let a model speak.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "commands.h"
#include "lightcone/models/llama/llama.h"

namespace lc::tool {

// With its progress shown; Error that names --tokenizer where it has none.
Llama load_model(const SpeakOptions& o);
SamplerOptions seeded(const SpeakOptions& o);  // with a seed of chance where none was given
// A sentence on the standard error.
void note(const std::string& what);

// Prints text as it comes, holding back the bytes of a character that is not complete. What a model says goes into a
// file or a pipe as it is; a terminal gets no control characters from it.
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
// One line: speed, on the CPU how near the memory's limit, and memory used: what the plan said, and what is no part of
// it.
void report(const Llama& m, const Timing& t, const SpeakOptions& o, std::uint64_t seed);

}  // namespace lc::tool
