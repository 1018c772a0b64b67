// Vocabularies made from texts: pairs that stand beside each other most often become pieces, one after another.
#pragma once

#include <span>
#include <string>

#include "lightcone/io/text/tokenizer.h"

namespace lc {

struct BpeOptions {
  int size = 1024;            // pieces in the end; where the texts give fewer, unused ones fill up
  bool byte_fallback = true;  // 256 pieces for the bytes of characters that the texts do not have
  bool merges = true;         // false: each character is a piece, and none is longer
};

// A SentencePiece-style vocabulary (kind SentencePiece): <unk>, <s>, </s>, the bytes, what was merged in the order of
// merging, the characters. Merging is byte pair encoding (R. Sennrich, B. Haddow and A. Birch, "Neural machine
// translation of rare words with subword units", 2016) within words, which are letters with the space before them;
// every other character is a word of its own. Of pairs that are equally many the greatest by their bytes is merged.
// Without merges nothing is put before a text.
// Error when a text is not UTF-8, and when special pieces, bytes and characters alone are more than `size`.
Vocabulary train_bpe(std::span<const std::string> texts, const BpeOptions& o = {});

}  // namespace lc
