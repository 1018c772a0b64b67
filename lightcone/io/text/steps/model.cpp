#include "lightcone/io/text/steps/model.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "lightcone/io/text/steps/fields.h"

namespace lc {

using io::Json;

namespace {

// Returns a score as the reference parses it: the digits as an integer, rounded, times or over a power of ten, rounded
// again. The last bit decides between segmentations of equal score.
double as_reference_reads(double score) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, score, std::chars_format::scientific).ptr;
  std::uint64_t digits = 0;
  int point = 0, exponent = 0;
  bool behind = false;
  const char* at = text;
  for (; at < end && *at != 'e'; ++at) {
    if (*at == '.') behind = true;
    if (*at < '0' || *at > '9') continue;
    digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
    point += behind;
  }
  if (at == end) return score;
  std::from_chars(at + (at[1] == '+' ? 2 : 1), end, exponent);
  exponent -= point;
  double power = 1;
  if (std::abs(exponent) > 308) return score;
  const std::string name = "1e" + std::to_string(std::abs(exponent));
  std::from_chars(name.data(), name.data() + name.size(), power);
  const double value = exponent >= 0 ? static_cast<double>(digits) * power : static_cast<double>(digits) / power;
  return std::signbit(score) ? -value : value;
}

}  // namespace

std::string_view model_type(Json model) {
  if (!model.is(Json::Kind::Object)) throw Error("tokenizer", "it has no model");
  const std::string_view type = type_of(model, "the model");
  if (!type.empty()) {
    for (const std::string_view known : {"BPE", "WordPiece", "WordLevel", "Unigram"})
      if (type == known) return known;
    throw Error("tokenizer", str_cat("a model of type ", in_quotes(type),
                                     " is not known (BPE, WordPiece, WordLevel and Unigram are)"));
  }
  if (!model["merges"].absent()) return "BPE";
  if (model["vocab"].is(Json::Kind::Array)) return "Unigram";
  return model["max_input_chars_per_word"].absent() && model["continuing_subword_prefix"].absent() ? "WordLevel"
                                                                                                   : "WordPiece";
}

std::vector<ModelToken> model_tokens(Json model, Budget& budget) {
  const bool unigram = model_type(model) == "Unigram";
  const Json all = model["vocab"];
  if (!all.is(unigram ? Json::Kind::Array : Json::Kind::Object)) throw Error("tokenizer", "the model has no vocab");
  budget.take(all.size(), sizeof(ModelToken));
  std::vector<ModelToken> tokens;
  tokens.reserve(all.size());
  for (const auto& [piece, number] : all) {
    if (!unigram) {
      const std::optional<std::int64_t> id = number.integer();
      if (!id) throw Error("tokenizer", str_cat("the id of ", in_quotes(piece), " is not a whole number"));
      tokens.push_back({piece, *id});
    } else {
      const std::optional<double> score = number[1].number();
      if (number.size() != 2 || !number[0].is(Json::Kind::String) || !score)
        throw Error("tokenizer", str_cat("the token ", tokens.size(), " is not a text and its score"));
      tokens.push_back({number[0].text(), static_cast<std::int64_t>(tokens.size()), as_reference_reads(*score)});
    }
  }
  return tokens;
}

std::unique_ptr<TokenModel> make_model(Json model, TokenIds ids, Budget& budget) {
  const std::string_view type = model_type(model);
  if (type == "BPE") return make_bpe(model, std::move(ids), budget);
  if (type == "Unigram") return make_unigram(model, std::move(ids), budget);
  return make_words(model, std::move(ids), budget);
}

}  // namespace lc
