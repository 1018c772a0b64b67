// SentencePiece's tokenizer.model, with that library's ids and texts.
#pragma once

#include <memory>
#include <string>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/pieces/charsmap.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// How a text is written before it is cut.
struct SentencePieceRules {
  CharsMap map;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

// What a tokenizer.model says besides its pieces.
struct SentencePieceModel {
  enum Kind { Unigram = 1, Bpe = 2, Word = 3, Char = 4 } kind = Unigram;
  SentencePieceRules rules, back;  // of encoding, and of decoding where its map is not empty
  bool whitespace_as_suffix = false, byte_fallback = false;
  std::string unknown_surface = " \xE2\x81\x87 ";  // what an unknown token is decoded to
};

// What is not known in a file is an Error that names it.
std::shared_ptr<const Tokenizer> tokenizer_from_sentencepiece(const MappedFile& file, Budget& budget);
std::shared_ptr<const Tokenizer> make_sentencepiece_model(Vocabulary v, SentencePieceModel m, Budget& budget);

}  // namespace lc
