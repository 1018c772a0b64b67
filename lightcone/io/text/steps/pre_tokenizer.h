// The pre-tokenizers of tokenizer.json, which split a text into pieces for the model.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/steps/normalizer.h"

namespace lc {

// The pieces of a text in order. Text between them is dropped.
struct Pieces {
  struct Piece {
    std::size_t begin, end;
    std::size_t from_start;  // as in NormalText, of this piece
  };
  std::string text;
  std::vector<Piece> pieces;
  std::string_view view(const Piece& p) const { return std::string_view(text).substr(p.begin, p.end - p.begin); }
};

// A sequence of splitting steps.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(io::Json pre_tokenizer, Budget& budget);
  void apply(Pieces& p) const;

 private:
  using Step = std::function<void(Pieces&)>;
  std::vector<Step> steps_;
};

}  // namespace lc
