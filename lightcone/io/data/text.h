// Texts as numbers, for language models of characters or bytes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/data/dataset.h"
#include "lightcone/io/read_options.h"

namespace lc {

// Returns the bytes of a file. Throws Error if it is missing, empty or larger than ReadOptions::memory allows.
std::string read_text(const std::string& path, const ReadOptions& o = {});

// Maps the characters of texts, or bytes, to numbers and back.
class CharVocabulary {
 public:
  // The vocabulary of the characters (code points) of a text, numbered in ascending order, as sorted(set(text)) in
  // Python. Throws Error, with the position, if the text is not UTF-8.
  static CharVocabulary of(std::string_view text);
  // The vocabulary of the 256 bytes, each its own number, for any text and any other bytes.
  static CharVocabulary bytes();

  // Number of entries.
  std::int64_t size() const { return static_cast<std::int64_t>(pieces_.size()); }
  // Returns the text of a number. Throws Error if there is no such number.
  const std::string& piece(std::int64_t id) const;
  // Returns the numbers of a text, i64 [characters]. Throws Error, with the position, for a character that is not in
  // the vocabulary and for a text that is not UTF-8.
  Array encode(std::string_view text) const;
  // Returns the text of a sequence of numbers. Throws Error if one is not in the vocabulary.
  std::string decode(std::span<const std::int64_t> ids) const;

 private:
  std::vector<std::string> pieces_;
  std::map<std::string, std::int64_t, std::less<>> ids_;  // empty for bytes
};

// Returns samples for next-token prediction: "x" and "y", i64 [n, length], where y is x shifted by one token. Sample i
// begins at token i * stride, and there are as many as fit. Throws Error if none fits.
Dataset next_token_samples(std::span<const std::int64_t> tokens, std::int64_t length, std::int64_t stride);

}  // namespace lc
