// The special tokens of a Whisper, and what its generation_config.json says of generating.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// Ids of tokens; -1 for one that the model has not.
struct WhisperTokens {
  int end = -1;    // <|endoftext|>; the ids before it are text
  int start = -1;  // <|startoftranscript|>
  int transcribe = -1, translate = -1;
  int previous = -1;                                        // <|startofprev|>, before the text of earlier windows
  int no_speech = -1;                                       // <|nospeech|>, called <|nocaptions|> before
  int start_of_words = -1;                                  // <|startoflm|>, which no text has
  int no_timestamps = -1;                                   // <|notimestamps|>
  int first_timestamp = -1;                                 // <|0.00|>; each following one is 0.02 s later
  std::vector<std::pair<std::string, int>> languages = {};  // "en", ...; empty if the model knows English alone
  std::vector<int> suppressed = {}, suppressed_first = {};  // never generated; not generated as the first
  std::vector<std::pair<int, int>> alignment_heads = {};    // layer and head whose attention tells when a word is said

  bool is_timestamp(int id) const { return id >= first_timestamp; }
  bool is_text(int id) const { return id < end; }
  // The token of a language. Throws Error that names the nearest one if there is none.
  int language(std::string_view code) const;

  // Finds the tokens by their texts, and reads generation_config.json beside the weights or, without one, the same keys
  // of config.json. Throws Error for a tokenizer that is not Whisper's, and for ids outside of the vocabulary.
  static WhisperTokens from(const Weights& w, const Tokenizer& tokenizer, std::int64_t vocabulary, std::int64_t layers,
                            std::int64_t heads);
};

}  // namespace lc
