#include "lightcone/llm/model_tokenizer.h"

#include <algorithm>

#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/printable.h"

namespace lc::llm {
namespace {

std::shared_ptr<const Tokenizer> find(const Weights& w, const std::string& given, std::int64_t vocabulary) {
  if (!given.empty()) return load_tokenizer(given, static_cast<int>(vocabulary), w.options());
  if (w.gguf() && w.gguf()->metadata.contains("tokenizer.ggml.tokens"))
    return tokenizer_from_gguf(*w.gguf(), w.options());
  const std::string file = find_tokenizer_file(w.path());
  return file.empty() ? nullptr : load_tokenizer(file, static_cast<int>(vocabulary), w.options());
}

// Throws Error if the tokenizer is seen to belong to another model, which would silently turn every text into garbage.
// Numbers of rows and tokens may differ: embedding tables are often padded, and files define special tokens for which
// the model has no rows.
void check(const Weights& w, const Tokenizer& t, std::int64_t vocabulary, std::span<const int> ends,
           const std::string& given) {
  const Vocabulary& v = t.vocabulary();
  const auto refuse = [&](const std::string& why) {
    throw file_error("tokenizer", w.path(), "the tokenizer", given.empty() ? "" : " ", given,
                     " is not this model's: ", why);
  };
  const auto special = [&](std::size_t id) {
    return v.types[id] != Vocabulary::Type::Normal && v.types[id] != Vocabulary::Type::Byte;
  };
  const auto rows = static_cast<std::size_t>(vocabulary), tokens = v.pieces.size();
  bool ordinary = tokens < rows - rows / 10;
  for (std::size_t id = rows; id < tokens; ++id) ordinary = ordinary || v.types.empty() || !special(id);
  if (ordinary) refuse(str_cat("it has ", tokens, " tokens, the embedding ", rows, " rows"));
  if (v.types.empty() || ends.empty()) return;
  const auto known = [&](int id) {
    return static_cast<std::size_t>(id) >= tokens || t.is_end(id) || special(static_cast<std::size_t>(id));
  };
  if (std::none_of(ends.begin(), ends.end(), known))
    refuse(str_cat("the model ends a text by token ", ends[0], ", which it spells ",
                   in_quotes(v.pieces[static_cast<std::size_t>(ends[0])])));
}

}  // namespace

std::shared_ptr<const Tokenizer> model_tokenizer(const Weights& w, std::int64_t vocabulary, std::span<const int> ends,
                                                 const std::string& file) {
  const auto tokens = find(w, file, vocabulary);
  if (tokens) check(w, *tokens, vocabulary, ends, file);
  return tokens;
}

}  // namespace lc::llm
