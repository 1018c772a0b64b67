// tokenizer.json's models: the tokens of one piece of a text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/pieces/string_map.h"

namespace lc {

// The texts of a model's tokens by their ids. The texts lie elsewhere and outlive it.
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

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a piece, which is not empty.
  virtual void encode(std::string_view piece, std::vector<int>& out) const = 0;
};

// One token of a file: its text and id, and a Unigram's score.
struct ModelToken {
  std::string_view text;
  std::int64_t id;
  double score = 0;
};
// "BPE", "WordPiece", "WordLevel" or "Unigram": by its type, or by what it has, as files of old leave the type out.
std::string_view model_type(io::Json model);
std::vector<ModelToken> model_tokens(io::Json model, Budget& budget);
// `ids` are those of model_tokens(). The texts they refer to outlive the model.
std::unique_ptr<TokenModel> make_model(io::Json model, TokenIds ids, Budget& budget);

std::unique_ptr<TokenModel> make_bpe(io::Json model, TokenIds ids, Budget& budget);
std::unique_ptr<TokenModel> make_unigram(io::Json model, TokenIds ids, Budget& budget);
std::unique_ptr<TokenModel> make_words(io::Json model, TokenIds ids, Budget& budget);

}  // namespace lc
