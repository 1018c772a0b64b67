// Reader of SentencePiece's tokenizer.model, with the ids and texts of that library.
#pragma once

#include <memory>
#include <string>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/pieces/charsmap.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// Normalisation of a text before it is split.
struct SentencePieceRules {
  CharsMap map;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

// The settings of a tokenizer.model besides its pieces.
struct SentencePieceModel {
  enum Kind { Unigram = 1, Bpe = 2, Word = 3, Char = 4 } kind = Unigram;
  SentencePieceRules rules, back;  // for encoding, and for decoding if its map is not empty
  bool whitespace_as_suffix = false, byte_fallback = false;
  bool cuts_defined = false;  // user-defined symbols end a text, and another one begins behind them
  std::string unknown_surface = " \xE2\x81\x87 ";  // the text of a decoded unknown token
};

// Reads a tokenizer.model. Throws Error that names a field of the file that is not supported.
std::shared_ptr<const Tokenizer> tokenizer_from_sentencepiece(const MappedFile& file, Budget& budget);
// Makes a tokenizer from pieces and settings.
std::shared_ptr<const Tokenizer> make_sentencepiece_model(Vocabulary v, SentencePieceModel m, Budget& budget);

}  // namespace lc
