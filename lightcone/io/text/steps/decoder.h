// The decoders of tokenizer.json: from tokens to a text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"

namespace lc {

// A sequence of decoding steps.
class Decoder {
 public:
  Decoder() = default;
  Decoder(io::Json decoder, Budget& budget);
  // Returns the text of all its tokens. As in the reference, invalid UTF-8 becomes U+FFFD.
  std::string text(std::vector<std::string> tokens) const;
  // Returns the bytes that one more token adds within a text, unchanged.
  std::string within(std::string token) const;

 private:
  struct Tokens {
    std::vector<std::string> list;
    bool within = false;  // there is one token, neither the first nor the last of its text
    bool fused = false;   // a step has joined all tokens into one element
  };
  friend class DecoderReader;
  using Step = std::function<void(Tokens&)>;
  std::vector<Step> steps_;
  bool none_ = true;  // without a decoder, tokens are joined by spaces
};

}  // namespace lc
