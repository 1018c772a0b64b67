#include "lightcone/io/data/text.h"

#include <set>

#include "lightcone/io/data/opened.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

// Returns the character at text[at]. Throws Error if there is none.
std::string_view character(std::string_view text, std::size_t at) {
  const std::size_t n = utf8_length(text, at);
  if (n == 0)
    throw Error("vocabulary",
                str_cat("the text is not UTF-8 at byte ", at, "; CharVocabulary::bytes() takes any bytes"));
  return text.substr(at, n);
}

}  // namespace

std::string read_text(const std::string& path, const ReadOptions& o) {
  const auto file = io::opened(path, o);
  Budget budget = io::budget_for(*file, o);
  const auto bytes = file->bytes();
  budget.take(bytes.size());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The order of UTF-8 bytes is that of the code points.
CharVocabulary CharVocabulary::of(std::string_view text) {
  std::set<std::string_view> seen;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view c = character(text, at);
    seen.insert(c);
    at += c.size();
  }
  CharVocabulary v;
  for (std::string_view c : seen) {
    v.ids_.emplace(c, v.size());
    v.pieces_.emplace_back(c);
  }
  return v;
}

CharVocabulary CharVocabulary::bytes() {
  CharVocabulary v;
  for (int b = 0; b < 256; ++b) v.pieces_.emplace_back(1, static_cast<char>(b));
  return v;
}

const std::string& CharVocabulary::piece(std::int64_t id) const {
  if (id < 0 || id >= size()) throw Error("vocabulary", str_cat("there is no number ", id, " among ", size()));
  return pieces_[static_cast<std::size_t>(id)];
}

Array CharVocabulary::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (ids_.empty() && !pieces_.empty()) {
      ids.push_back(static_cast<unsigned char>(text[at++]));
      continue;
    }
    const std::string_view c = character(text, at);
    const auto it = ids_.find(c);
    if (it == ids_.end())
      throw Error("vocabulary", str_cat("the character ", in_quotes(c), " at byte ", at, " is not in the vocabulary"));
    ids.push_back(it->second);
    at += c.size();
  }
  return Array::of<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids);
}

std::string CharVocabulary::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  for (std::int64_t id : ids) text += piece(id);
  return text;
}

Dataset next_token_samples(std::span<const std::int64_t> tokens, std::int64_t length, std::int64_t stride) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  if (length < 1 || stride < 1)
    throw Error("next_token_samples", str_cat("length ", length, ", stride ", stride, ": both must be 1 or more"));
  if (n <= length)
    throw Error("next_token_samples", str_cat(n, " tokens hold no sample of ", length, " and the token that follows"));
  const std::int64_t samples = (n - 1 - length) / stride + 1;
  Array x = Array::zeros(DType::I64, {samples, length}), y = x;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t* from = tokens.data() + i * stride;
    const std::size_t row = x.row_bytes();
    std::memcpy(x.bytes.data() + static_cast<std::size_t>(i) * row, from, row);
    std::memcpy(y.bytes.data() + static_cast<std::size_t>(i) * row, from + 1, row);
  }
  Arrays arrays;
  arrays.emplace("x", std::move(x));
  arrays.emplace("y", std::move(y));
  return Dataset(std::move(arrays));
}

}  // namespace lc
