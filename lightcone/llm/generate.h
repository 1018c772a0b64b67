// generate(): continues the sequence of a decoder token by token.
//
//   std::span<const float> logits = decoder.feed(prompt_tokens(tokenizer, "Once upon a time"));
//   generate(decoder, pick, logits, {.max_tokens = 100, .ends = [&](int id) { return model.ends(id); },
//                                    .on_token = [&](int id) { return std::cout << tokenizer.piece(id), true; }});
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/io/text/tokenizer.h"
#include "lightcone/llm/decoder.h"
#include "lightcone/llm/sampler.h"

namespace lc::llm {

// Returns the tokens of a text that a model shall continue. The token that some tokenizers add to the end of every text
// is left out.
std::vector<int> prompt_tokens(const Tokenizer& tokenizer, std::string_view text);

// The reason why a text ended: the model ended it or its turn, one of the limits was reached, or the callback stopped
// it.
enum class End : std::uint8_t { Turn, MaxTokens, Context, Stopped };

// Options of generate().
struct GenerateOptions {
  int max_tokens = 0;                            // limit of the generated tokens; 0: the room left in the context
  std::function<bool(int token)> ends = {};      // returns true for a token that ends the text; unset: none does
  std::function<bool(int token)> on_token = {};  // receives each token of the text; returns false to stop
};

// A generated text.
struct Generated {
  std::vector<int> tokens;  // without the token that ended the text
  End end = End::Turn;
  std::size_t steps = 0;  // number of tokens fed to the decoder: the last one need not be
};

// Generates tokens from the logits of the last token fed to `d`; of several rows of logits the last one counts. Throws
// Error for the reasons of the sampler and of Decoder::feed().
Generated generate(Decoder& d, Sampler& pick, std::span<const float> logits, const GenerateOptions& o);

}  // namespace lc::llm
