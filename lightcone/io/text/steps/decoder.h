// tokenizer.json's decoders: from tokens to a text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"

namespace lc {

class Decoder {
 public:
  Decoder() = default;
  Decoder(io::Json decoder, Budget& budget);
  // A text of all its tokens; bytes that are no UTF-8 become U+FFFD, as the reference has it.
  std::string text(std::vector<std::string> tokens) const;
  // What one more token adds within a text; its bytes as they are.
  std::string within(std::string token) const;

 private:
  struct Tokens {
    std::vector<std::string> list;
    bool within = false;  // the one token is neither the first nor the last of its text
    bool fused = false;   // the list is the whole text, or what it gets
  };
  friend class DecoderReader;
  using Step = std::function<void(Tokens&)>;
  std::vector<Step> steps_;
  bool none_ = true;  // without a decoder tokens stand beside each other with spaces between them
};

}  // namespace lc
