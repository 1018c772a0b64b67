// tokenizer.json's pre-tokenizers: a text is cut into pieces, which the model encodes one by one.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/steps/normalizer.h"

namespace lc {

// Pieces of a text, in its order; what lies between them is dropped.
struct Pieces {
  struct Piece {
    std::size_t begin, end;
    std::size_t from_start;  // as NormalText's, of this piece
  };
  std::string text;
  std::vector<Piece> pieces;
  std::string_view view(const Piece& p) const { return std::string_view(text).substr(p.begin, p.end - p.begin); }
};

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
