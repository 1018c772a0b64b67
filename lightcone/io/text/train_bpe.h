// Trains vocabularies on texts: the most frequent adjacent pair becomes a piece, repeatedly.
#pragma once

#include <span>
#include <string>

#include "lightcone/io/text/tokenizer.h"

namespace lc {

// Options of train_bpe().
struct BpeOptions {
  int size = 1024;            // final number of pieces; filled up with unused ones if the texts yield fewer
  bool byte_fallback = true;  // adds 256 byte pieces, for characters that the texts do not have
  bool merges = true;         // false: only single characters are pieces
};

// Trains a SentencePiece-style vocabulary (kind SentencePiece). Its pieces are <unk>, <s>, </s>, the bytes, the merged
// pieces in order of merging, and the characters. Merging is byte pair encoding (R. Sennrich, B. Haddow and A. Birch,
// "Neural machine translation of rare words with subword units", 2016) within words. A word is an optional space
// followed by letters or by one other character. If pairs are equally frequent, the greatest by bytes is merged.
// Without merges, no space is added before a text. Throws Error if a text is not UTF-8, or if special pieces, bytes and
// characters exceed `size`.
Vocabulary train_bpe(std::span<const std::string> texts, const BpeOptions& o = {});

}  // namespace lc
