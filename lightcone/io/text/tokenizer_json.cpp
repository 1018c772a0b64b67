#include "lightcone/io/text/tokenizer_json.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/clean_up.h"
#include "lightcone/io/text/steps/added_tokens.h"
#include "lightcone/io/text/steps/decoder.h"
#include "lightcone/io/text/steps/fields.h"
#include "lightcone/io/text/steps/model.h"
#include "lightcone/io/text/steps/normalizer.h"
#include "lightcone/io/text/steps/post_processor.h"
#include "lightcone/io/text/steps/pre_tokenizer.h"
#include "lightcone/io/text/tokenizer_kinds.h"

namespace lc {
namespace {

using io::Json;
using Type = Vocabulary::Type;

// The components of a tokenizer.json.
struct Pipeline {
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<TokenModel> model;
  PostProcessor post_processor;
  Decoder decoder;
  Truncation truncation;
  Padding padding;
  std::deque<std::string> others;  // owns tokens that share an id with another one
  bool clean_up = false;           // takes away spaces of a decoded text
};

class PipelineTokenizer final : public Tokenizer {
 public:
  PipelineTokenizer(Vocabulary v, Pipeline p) : Tokenizer(std::move(v)), p_(std::move(p)) {
    for (const AddedToken& t : p_.added.all()) spelled_.try_emplace(t.id, t.spelled);
  }

 private:
  std::vector<int> ids_of(std::string_view text, bool specials, bool parse_control) const override {
    return encoding_of(std::span(&text, 1), specials, parse_control).ids;
  }
  Encoding encoding_of(std::span<const std::string_view> texts, bool specials, bool parse_control) const override;
  Encoding encoding_within(std::span<const std::string_view> texts, std::size_t most) const override;
  std::vector<int> plain_ids(std::string_view text, bool parse_control) const;
  std::string text_of(std::span<const int> ids) const override;
  std::string bytes_of(int id) const override { return hidden(id) ? "" : p_.decoder.within(spelled(id)); }
  const std::string& spelled(int id) const {
    const auto at = spelled_.find(id);
    return at == spelled_.end() ? v_.pieces[static_cast<std::size_t>(id)] : at->second;
  }
  // True for special tokens, and for ids without a token.
  bool hidden(int id) const { return type(id) == Type::Unused || p_.added.special(spelled(id)); }

  Pipeline p_;
  std::unordered_map<int, std::string> spelled_;  // texts of added tokens
};

Encoding PipelineTokenizer::encoding_of(std::span<const std::string_view> texts, bool specials,
                                        bool parse_control) const {
  std::vector<std::vector<int>> ids;
  for (const std::string_view text : texts) ids.push_back(plain_ids(text, parse_control));
  p_.truncation.apply(ids, specials ? p_.post_processor.added(texts.size() > 1) : 0);
  TypedIds t = p_.post_processor.apply(typed(std::move(ids)), specials);
  std::vector<int> mask(t.ids.size(), 1);
  const std::size_t padded = p_.padding.apply(t);
  mask.insert(p_.padding.left() ? mask.begin() : mask.end(), padded, 0);
  return {std::move(t.ids), std::move(t.types), std::move(mask)};
}

Encoding PipelineTokenizer::encoding_within(std::span<const std::string_view> texts, std::size_t most) const {
  std::vector<std::vector<int>> ids;
  for (const std::string_view text : texts) ids.push_back(plain_ids(text, false));
  Truncation(most).apply(ids, p_.post_processor.added(texts.size() > 1));
  TypedIds t = p_.post_processor.apply(typed(std::move(ids)), true);
  std::vector<int> mask(t.ids.size(), 1);
  return {std::move(t.ids), std::move(t.types), std::move(mask)};
}

// The ids of a text without the tokens around it.
std::vector<int> PipelineTokenizer::plain_ids(std::string_view text, bool parse_control) const {
  std::vector<int> ids;
  const auto encode = [&](Pieces pieces) {
    p_.pre_tokenizer.apply(pieces);
    for (const Pieces::Piece& piece : pieces.pieces)
      if (piece.end > piece.begin) p_.model->encode(pieces.view(piece), ids);
  };
  p_.added.split(text, false, parse_control, [&](std::size_t begin, std::size_t end, int id) {
    if (id >= 0) {
      ids.push_back(id);
      return;
    }
    NormalText t{std::string(text.substr(begin, end - begin)),
                 begin == 0 ? std::max<std::size_t>(1, utf8_length(text, 0)) : 0};
    p_.normalizer.apply(t);
    p_.added.split(t.text, true, parse_control, [&](std::size_t b, std::size_t e, int token) {
      if (token >= 0) ids.push_back(token);
      else encode({t.text.substr(b, e - b), {{0, e - b, t.from_start > b ? std::min(t.from_start, e) - b : 0}}});
    });
  });
  return ids;
}

std::string PipelineTokenizer::text_of(std::span<const int> ids) const {
  std::vector<std::string> tokens;
  for (const int id : ids)
    if (!hidden(id)) tokens.push_back(spelled(id));
  std::string text = p_.decoder.text(std::move(tokens));
  return p_.clean_up ? cleaned_up(std::move(text), CleanUp::Transformers) : text;
}

class Reader {
 public:
  Reader(const MappedFile& file, Budget& budget)
      : path_(file.path()),
        budget_(budget),
        text_({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path_, budget),
        root_(text_.root()) {}
  std::shared_ptr<const Tokenizer> read();

 private:
  void pieces(Json model);
  void put(std::int64_t id, std::string_view piece, Type t);
  void add(const AddedTokens& tokens);
  void configure(Pipeline& p);
  int id_of(std::string_view piece) const {
    for (const AddedToken& t : added_->all())
      if (t.content == piece) return t.id;
    const auto at = model_.find(piece);
    return at == model_.end() ? -1 : at->second;
  }

  const std::string& path_;
  Budget& budget_;
  const io::JsonDocument text_;
  const Json root_;
  Vocabulary v_;
  const AddedTokens* added_ = nullptr;
  std::size_t model_size_ = 0;      // number of tokens of the model, duplicates included
  StringMap model_;                 // ids of the model's tokens; keys refer to v_.pieces, which must not move
  std::deque<std::string> others_;  // owns tokens that share an id with another one
};

// Stores a token. Ids may have gaps, as far as the budget for a file of this size allows.
void Reader::put(std::int64_t id, std::string_view piece, Type t) {
  if (id < 0 || id >= std::numeric_limits<int>::max())
    throw Error("tokenizer", str_cat("the token id ", id, " is out of range"));
  const auto i = static_cast<std::size_t>(id);
  if (i >= v_.pieces.size()) {
    budget_.take(i + 1 - v_.pieces.size(), piece_bytes(0));
    v_.pieces.resize(i + 1), v_.types.resize(i + 1, Type::Unused);
  }
  budget_.take(piece.size() + 1);
  v_.pieces[i] = piece, v_.types[i] = t;
}

void Reader::pieces(Json model) {
  const std::vector<ModelToken> tokens = model_tokens(model, budget_);
  budget_.take(tokens.size(), kIndexBytes);
  for (const ModelToken& t : tokens) put(t.id, t.text, Type::Normal);
  const std::size_t more = root_["added_tokens"].size() + 1;
  budget_.take(more, piece_bytes(0));
  v_.pieces.reserve(std::max(v_.pieces.size(), tokens.size()) + more);  // the map refers to its elements
  model_.reserve(tokens.size());
  for (const ModelToken& t : tokens) {  // the last of equal tokens is kept, as in the reference
    const std::string& piece = v_.pieces[static_cast<std::size_t>(t.id)];
    model_.insert_or_assign(piece == t.text ? std::string_view(piece) : others_.emplace_back(t.text),
                            static_cast<int>(t.id));
  }
  model_size_ = model_type(model) == "Unigram" ? tokens.size() : model_.size();
}

void Reader::add(const AddedTokens& tokens) {
  added_ = &tokens;
  for (const AddedToken& t : tokens.all()) {
    const Type type = t.special ? Type::Control : Type::UserDefined;
    const auto i = static_cast<std::size_t>(t.id);
    if (i < v_.pieces.size() && v_.types[i] != Type::Unused) v_.types[i] = type;  // the map refers to it
    else put(t.id, t.content, type);
  }
}

// Sets the tokens around a text from tokenizer_config.json, or by their usual names; and the clean-up of decoded texts,
// which would change what byte-level texts and those of SentencePiece say.
void Reader::configure(Pipeline& p) {
  constexpr const char* kConfig[] = {"tokenizer_config.json"};
  const std::string file = io::first_in(std::filesystem::path(path_).parent_path().string(), kConfig);
  const io::JsonDocument config = file.empty() ? io::JsonDocument("{}", path_, budget_) : io::read_json(file, budget_);
  const auto named = [&](const char* key, std::initializer_list<const char*> usual) {
    const Json token = config.root()[key], content = token.is(Json::Kind::Object) ? token["content"] : token;
    if (!content.absent() && !content.is(Json::Kind::String))
      throw Error("tokenizer", str_cat(in_quotes(key), " of tokenizer_config.json is not a string"));
    if (const int id = id_of(content.text()); id >= 0) return id;
    for (const char* name : usual)
      if (const int id = id_of(name); id >= 0) return id;
    return -1;
  };
  v_.bos = named("bos_token", {"<s>", "<|begin_of_text|>", "[CLS]"});
  v_.eos = named("eos_token", {"</s>", "<|end_of_text|>", "<|endoftext|>", "<|im_end|>", "[SEP]"});
  if (const Json clean = config.root()["clean_up_tokenization_spaces"]; model_type(root_["model"]) == "WordPiece") {
    if (!clean.absent() && !clean.is(Json::Kind::Bool))
      throw Error("tokenizer", "'clean_up_tokenization_spaces' of tokenizer_config.json is not true or false");
    p.clean_up = clean.flag().value_or(false);
  }
  const auto [before, behind] = p.post_processor.around();
  if (!before.empty()) v_.bos = before.front(), v_.add_bos = true;
  if (!behind.empty()) v_.eos = behind.back(), v_.add_eos = true;
}

std::shared_ptr<const Tokenizer> Reader::read() {
  const Fields root(root_, "the file",
                    {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
  if (root.text_or("version", "1.0") != "1.0")
    root.fail("its version is ", in_quotes(root.text("version")), ", not 1.0");
  const Json model = root_["model"];
  pieces(model);
  Pipeline p;
  p.normalizer = Normalizer(root_["normalizer"], budget_);
  p.pre_tokenizer = PreTokenizer(root_["pre_tokenizer"], budget_);
  p.post_processor = PostProcessor(root_["post_processor"], budget_);
  p.decoder = Decoder(root_["decoder"], budget_);
  p.truncation = Truncation(root_["truncation"]);
  p.padding = Padding(root_["padding"]);
  const auto of_model = [&](std::string_view text) {
    const auto at = model_.find(text);
    return at == model_.end() ? -1 : at->second;
  };
  p.added = AddedTokens(root_["added_tokens"], p.normalizer, of_model, model_size_, budget_);
  add(p.added);
  if (v_.pieces.empty()) root.fail("the vocabulary is empty");
  if (p.post_processor.largest() >= static_cast<int>(v_.pieces.size()))
    root.fail("the post-processor adds the token ", p.post_processor.largest(), ", which the vocabulary does not have");
  v_.kind = Vocabulary::Kind::Pipeline;
  configure(p);
  v_.unk = id_of(model["unk_token"].text());
  if (model["unk_id"].integer()) v_.unk = static_cast<int>(*model["unk_id"].integer());
  find_ends(v_);
  p.model = make_model(model, TokenIds(std::move(model_)), budget_);
  p.others = std::move(others_);
  return std::make_shared<PipelineTokenizer>(std::move(v_), std::move(p));
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_json(const MappedFile& file, Budget& budget) try {
  return Reader(file, budget).read();
} catch (const Error& e) {
  if (e.op() != "tokenizer" || std::string_view(e.what()).find(file.path()) != std::string_view::npos) throw;
  throw file_error("tokenizer", file.path(), e.problem());
}

}  // namespace lc
