// Data of language models: a text file in windows, or stories without end.
#include <algorithm>
#include <cmath>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/data/loader.h"
#include "lightcone/io/data/text.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/train_bpe.h"
#include "lightcone/io/utf8.h"
#include "stories.h"

namespace lc::tool {
namespace {

std::shared_ptr<const Tokenizer> tokenizer_for(const std::vector<std::string>& texts, const ModelConfig& m) {
  const bool bpe = m.tokenizer == "bpe";
  return make_tokenizer(
      train_bpe(texts, {.size = static_cast<int>(m.vocabulary), .byte_fallback = bpe, .merges = bpe}));
}

void append_window(Arrays& to, i64 sample, std::span<const int> tokens) {
  const std::size_t length = tokens.size() - 1;
  i64* x = to.at("x").values<i64>().data() + static_cast<std::size_t>(sample) * length;
  i64* y = to.at("y").values<i64>().data() + static_cast<std::size_t>(sample) * length;
  for (std::size_t k = 0; k < length; ++k) x[k] = tokens[k], y[k] = tokens[k + 1];
}

// Each sample begins with a story, and others follow until it is full.
class Stories final : public TrainingData {
 public:
  explicit Stories(const TrainConfig& c) : c_(c) {
    constexpr std::uint64_t kForTokenizer = 4000;
    std::vector<std::string> texts;
    for (std::uint64_t k = 0; k < kForTokenizer; ++k) texts.push_back(story(seed(0), k));
    tokens_ = tokenizer_for(texts, c.model);
  }
  Arrays batch(i64 step) override {
    return windows(seed(1), step * c_.train.batch + c_.part_begin, c_.part_size > 0 ? c_.part_size : c_.train.batch);
  }
  i64 held_out() const override { return c_.held_out_samples; }
  Arrays held_out_batch(i64 first) override { return windows(seed(2), first, c_.train.batch); }
  std::string summary() const override {
    return str_cat("stories without end; ", c_.held_out_samples, " samples of ", c_.model.context, " tokens held out");
  }
  const Tokenizer* tokenizer() const override { return tokens_.get(); }

 private:
  // Seeds of three streams that share no story: for the tokenizer, for training, held out.
  std::uint64_t seed(std::uint64_t stream) const { return 3 * static_cast<std::uint64_t>(c_.train.seed) + stream; }
  Arrays windows(std::uint64_t stream, i64 first, i64 batch) const {
    const i64 length = c_.model.context;
    Arrays a;
    for (const char* name : {"x", "y"}) a.emplace(name, Array::zeros(DType::I64, {batch, length}));
    for (i64 i = 0; i < batch; ++i) {
      constexpr std::uint64_t kMost = 1 << 16;  // stories of a sample; the shortest is longer than one token
      std::vector<int> ids;
      for (std::uint64_t k = 0; static_cast<i64>(ids.size()) <= length; ++k) {
        ids.push_back(tokens_->bos());
        const auto number = static_cast<std::uint64_t>(first + i) * kMost + k;
        const std::vector<int> one = tokens_->encode(story(stream, number), false);
        ids.insert(ids.end(), one.begin(), one.end());
        ids.push_back(tokens_->eos());
      }
      append_window(a, i, std::span(ids).first(static_cast<std::size_t>(length) + 1));
    }
    return a;
  }
  const TrainConfig& c_;
  std::shared_ptr<const Tokenizer> tokens_;
};

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = separator.empty() ? text.npos : text.find(separator, at);
    if (const std::string part = text.substr(at, end - at); !part.empty()) parts.push_back(part);
    at = end == text.npos ? text.size() + 1 : end + separator.size();
  }
  return parts;
}

std::string read_all(const std::vector<std::string>& paths, const std::string& between) {
  std::string all;
  constexpr ReadOptions options{.memory = std::size_t{4} << 30};
  for (const std::string& p : paths) all += (all.empty() ? "" : between) + read_text(p, options);
  require_utf8(all, in_quotes(paths.front()));
  return all;
}

class Texts final : public TrainingData {
 public:
  Texts(const TrainConfig& c, std::shared_ptr<const Tokenizer> tokenizer) : c_(c), tokens_(std::move(tokenizer)) {
    const std::string& separator = c.data.separator;
    std::string text = read_all(c.data.train, separator), rest;
    if (!c.data.test.empty()) rest = read_all(c.data.test, separator);
    else rest = cut_off(text, c.data.held_out);
    const std::vector<std::string> documents = split(text, separator);
    if (documents.empty()) throw Error("train", str_cat(in_quotes(c.data.train[0]), " holds no text to learn from"));
    if (!tokens_) tokens_ = tokenizer_for(documents, c.model);
    learned_ = windows(documents, "to learn from");
    held_out_ = windows(split(rest, separator), "to hold out");
    characters_ = text.size();
    if (c.held_out_samples > 0 && held_out_->size() > c.held_out_samples)
      held_out_ = std::make_shared<const Dataset>(held_out_->part(0, c.held_out_samples));
    loader_.emplace(learned_, LoaderOptions{.batch_size = c.train.batch,
                                            .shuffle = true,
                                            .seed = static_cast<std::uint64_t>(c.train.seed),
                                            .part_begin = c.part_begin,
                                            .part_size = c.part_size});
    held_loader_.emplace(held_out_, LoaderOptions{.batch_size = c.train.batch, .rest = Rest::Wrap, .prefetch = 0});
  }
  Arrays batch(i64 step) override {
    const LoaderPosition at{step / loader_->batches(), step % loader_->batches()};
    if (!(loader_->position() == at)) loader_->seek(at);
    return loader_->next().arrays;
  }
  i64 held_out() const override { return held_out_->size(); }
  Arrays held_out_batch(i64 first) override {
    const LoaderPosition at{0, first / c_.train.batch};
    if (!(held_loader_->position() == at)) held_loader_->seek(at);
    return held_loader_->next().arrays;
  }
  std::string summary() const override {
    return str_cat(characters_, " bytes of text; ", learned_->size(), " samples of ", c_.model.context,
                   " tokens to learn from, ", held_out_->size(), " held out");
  }
  const Tokenizer* tokenizer() const override { return tokens_.get(); }

 private:
  // Cuts off and returns the last part of a text, at a character's beginning.
  static std::string cut_off(std::string& text, double part) {
    std::size_t at = text.size() - static_cast<std::size_t>(std::llround(static_cast<double>(text.size()) * part));
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    const std::string rest = text.substr(at);
    text.resize(at);
    return rest;
  }
  std::shared_ptr<const Dataset> windows(const std::vector<std::string>& documents, const char* purpose) const {
    std::vector<i64> ids;
    for (const std::string& d : documents) {
      const std::vector<int> one = tokens_->encode(d, false);
      if (c_.model.tokenizer == "char") require_known(one);
      if (begins_with_bos()) ids.push_back(tokens_->bos());
      ids.insert(ids.end(), one.begin(), one.end());
      if (tokens_->eos() >= 0) ids.push_back(tokens_->eos());
    }
    const i64 length = c_.model.context, n = static_cast<i64>(ids.size());
    if (n <= length)
      throw Error("train", str_cat("the text ", purpose, " has ", n, " tokens, less than one sample of ", length + 1));
    return std::make_shared<const Dataset>(next_token_samples(ids, length, length));
  }
  // Returns whether a text begins with BOS, as the model expects.
  bool begins_with_bos() const { return tokens_->bos() >= 0 && (!c_.pretrained() || tokens_->vocabulary().add_bos); }
  void require_known(const std::vector<int>& ids) const {
    if (std::ranges::count(ids, tokens_->vocabulary().unk) > 0)
      throw Error("train",
                  "the held-out text has characters that the text to learn from has not: a vocabulary of "
                  "characters knows those alone (\"tokenizer\": \"bpe\" takes any text)");
  }
  const TrainConfig& c_;
  std::shared_ptr<const Tokenizer> tokens_;
  std::shared_ptr<const Dataset> learned_, held_out_;
  std::optional<DataLoader> loader_, held_loader_;
  std::size_t characters_ = 0;
};

}  // namespace

std::unique_ptr<TrainingData> read_texts(const TrainConfig& c, std::shared_ptr<const Tokenizer> tokenizer) {
  if (c.data.format == "stories") return std::make_unique<Stories>(c);
  return std::make_unique<Texts>(c, std::move(tokenizer));
}

}  // namespace lc::tool
