// The ids of prompts: CLIP's tokenizer from a folder with tokenizer.json, or with vocab.json and merges.txt; and T5's
// from one with tokenizer.json or spiece.model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lightcone/io/read_options.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc::diffusion {

// A tokenizer whose texts are all of one length: cut off, or filled up with a padding token.
class PromptTokenizer {
 public:
  // Opens a folder of transformers. Throws Error if there is no tokenizer in it, or one that is not CLIP's, or with
  // `t5` not T5's.
  static PromptTokenizer load(const std::string& folder, std::int64_t length, bool t5, const ReadOptions& o = {});
  // The ids of a prompt, `length` of them: <|startoftext|>, the text, <|endoftext|>, padding; or the text, </s>,
  // padding. A longer text is cut off.
  std::vector<std::int64_t> ids(const std::string& prompt) const;
  // True if the prompt is longer than the model takes.
  bool too_long(const std::string& prompt) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::int64_t length_ = 77, padding_ = 0;
};

}  // namespace lc::diffusion
