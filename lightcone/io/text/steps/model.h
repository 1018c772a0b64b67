// The models of tokenizer.json, which encode one piece of a text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/pieces/string_map.h"

namespace lc {

// A map from the texts of tokens to ids. The texts are owned elsewhere and must outlive it.
class TokenIds {
 public:
  TokenIds() = default;
  explicit TokenIds(StringMap ids) : ids_(std::move(ids)) {}
  int find(std::string_view token) const {
    const auto at = ids_.find(token);
    return at == ids_.end() ? -1 : at->second;
  }
  std::size_t size() const { return ids_.size(); }
  const StringMap& all() const { return ids_; }

 private:
  StringMap ids_;
};

// A model: BPE, Unigram, WordPiece or WordLevel.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a piece, which must not be empty.
  virtual void encode(std::string_view piece, std::vector<int>& out) const = 0;
};

// A token of a file: text, id and, for Unigram, score.
struct ModelToken {
  std::string_view text;
  std::int64_t id;
  double score = 0;
};
// Returns "BPE", "WordPiece", "WordLevel" or "Unigram": the type or, in old files without a type, derived from the
// fields.
std::string_view model_type(io::Json model);
// Reads the tokens of a model. Throws Error if the vocabulary is invalid.
std::vector<ModelToken> model_tokens(io::Json model, Budget& budget);
// Makes a model. `ids` are those of model_tokens(), and their texts must outlive the model.
std::unique_ptr<TokenModel> make_model(io::Json model, TokenIds ids, Budget& budget);

std::unique_ptr<TokenModel> make_bpe(io::Json model, TokenIds ids, Budget& budget);
std::unique_ptr<TokenModel> make_unigram(io::Json model, TokenIds ids, Budget& budget);
std::unique_ptr<TokenModel> make_words(io::Json model, TokenIds ids, Budget& budget);

}  // namespace lc
