// The tokenizer that belongs to a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc::llm {

// Returns the tokenizer in `file` or, without a file, in the checkpoint or its directory; null if there is none.
// `vocabulary` is the number of rows of the model's embedding table, and `ends` are the ids that end a text according
// to the model's configuration. Throws Error if the tokenizer belongs to another model.
std::shared_ptr<const Tokenizer> model_tokenizer(const Weights& w, std::int64_t vocabulary, std::span<const int> ends,
                                                 const std::string& file = "");

}  // namespace lc::llm
