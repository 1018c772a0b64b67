// The vocabulary of a file of whisper.cpp, which has the texts of ordinary tokens alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/io/read_options.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// The number of ids with languages, and the smallest and the largest number of a Whisper.
constexpr std::int64_t kWhisperEnglish = 51864, kWhisperMultilingual = 51865, kWhisperMost = 51866;
// Makes the tokenizer: special tokens stand where OpenAI's models have them, and pairs are joined in the order of their
// ids, as tiktoken does. `bytes`: the texts of the first ids. Throws Error if there are too few.
std::shared_ptr<const Tokenizer> ggml_tokenizer(const std::vector<std::string>& bytes, std::int64_t vocabulary,
                                                const std::string& path, Budget& budget);
// The ids that OpenAI's program never generates: signs that no speech has, and what begins a task.
std::vector<double> silenced_tokens(const Tokenizer& tokenizer);

}  // namespace lc
