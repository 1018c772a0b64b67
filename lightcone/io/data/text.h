// Texts as numbers for language models of characters or bytes.
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

// A file's bytes. Error when it is missing, empty or larger than ReadOptions::memory allows.
std::string read_text(const std::string& path, const ReadOptions& o = {});

// What numbers mean: the characters of a text, or bytes.
class CharVocabulary {
 public:
  // The characters (code points) of a text in the order of their numbers, as sorted(set(text)) in Python. Error, with
  // the place, when the text is not UTF-8.
  static CharVocabulary of(std::string_view text);
  // The 256 bytes, each its own number: for any text, and any other bytes.
  static CharVocabulary bytes();

  std::int64_t size() const { return static_cast<std::int64_t>(pieces_.size()); }
  const std::string& piece(std::int64_t id) const;  // Error when there is no such number
  // i64 [characters]. Error, with the place, for a character that the vocabulary has not, and where it is not UTF-8.
  Array encode(std::string_view text) const;
  std::string decode(std::span<const std::int64_t> ids) const;  // Error when one is no number of the vocabulary

 private:
  std::vector<std::string> pieces_;
  std::map<std::string, std::int64_t, std::less<>> ids_;  // empty for bytes
};

// Samples to learn the next token from: "x" and "y", i64 [n, length], where y is x one token later. Sample i begins at
// token i * stride, as many as fit. Error when not one does.
Dataset next_token_samples(std::span<const std::int64_t> tokens, std::int64_t length, std::int64_t stride);

}  // namespace lc
