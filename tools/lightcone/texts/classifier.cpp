// Classifiers of texts that training continues: a folder of Hugging Face's with an encoder, and rows of texts.
#include <algorithm>
#include <limits>
#include <set>

#include "../train/classifier.h"
#include "../train/table.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/data/loader.h"
#include "lightcone/io/printable.h"
#include "lightcone/llm/model_tokenizer.h"
#include "lightcone/models/encoder/text_classifier.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "rows.h"

namespace lc::tool {
namespace {

// A sample is i32 [2, length]: the ids of the tokens, and their kinds, which are -1 where the row is only filled up.
// Padding is told by its place: the id that pads may occur in a text.
constexpr std::int32_t kPadding = -1;

// TextClassifier on samples.
struct PackedTexts {
  TextClassifier classifier;
  void visit(nn::Visitor& v) { classifier.visit(v); }
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    const auto plane = [&](int k) { return to(narrow(x, 1, k, 1).squeeze(1), DType::I64); };
    const Tensor kinds = plane(1), mask = to(ge(kinds, 0), DType::I64);
    return classifier(plane(0), mask, kinds * mask, mode);
  }
};

// Sorted as numbers if all are whole numbers, otherwise as Python's sorted() does.
std::vector<std::string> classes_of(const std::vector<std::string>& labels) {
  const std::set<std::string> words(labels.begin(), labels.end());
  std::vector<std::string> all(words.begin(), words.end());
  const auto whole = [](const std::string& w) {
    const auto digits = w.find_first_not_of("0123456789", w.starts_with('-'));
    return w.size() < 16 && digits == w.npos && w != "-";
  };
  if (std::ranges::all_of(all, whole))
    std::ranges::sort(all, {}, [](const std::string& w) { return real_of<double>(w).value_or(0); });
  return all;
}

// The rows of a table as samples, and how many of them were cut.
struct Tokens {
  std::vector<Encoding> rows;
  std::vector<std::int64_t> classes;
  i64 cut = 0;
};

struct Counts {
  i64 cut = 0, length = 0;
};

class TextSamples final : public TrainingData {
 public:
  TextSamples(const TrainConfig& c, const Dataset& learn, const Dataset& hold, const Tokenizer& tokenizer,
              std::vector<std::string> classes, const Counts& counts)
      : c_(c), tokenizer_(tokenizer), classes_(std::move(classes)), counts_(counts) {
    learned_ = std::make_shared<const Dataset>(learn), held_out_ = std::make_shared<const Dataset>(hold);
    loader_.emplace(
        learned_,
        LoaderOptions{.batch_size = c.train.batch, .shuffle = true, .seed = static_cast<std::uint64_t>(c.train.seed)});
    held_loader_.emplace(held_out_, LoaderOptions{.batch_size = c.train.batch, .rest = Rest::Wrap, .prefetch = 0});
  }
  Arrays batch(i64 step) override { return at(*loader_, {step / loader_->batches(), step % loader_->batches()}); }
  i64 held_out() const override { return held_out_->size(); }
  Arrays held_out_batch(i64 first) override { return at(*held_loader_, {0, first / c_.train.batch}); }
  const Tokenizer* tokenizer() const override { return &tokenizer_; }
  std::string summary() const override {
    std::string names;
    for (std::size_t k = 0; k < classes_.size() && k < 20; ++k) names += (k ? ", " : "") + printable(classes_[k], 40);
    if (classes_.size() > 20) names += ", ...";
    return str_cat(learned_->size(), " texts of at most ", counts_.length, " tokens in ", classes_.size(), " classes (",
                   names, ") to learn from, ", held_out_->size(), " held out",
                   counts_.cut ? str_cat("; ", counts_.cut, " cut at model.length") : "");
  }

 private:
  static Arrays at(DataLoader& loader, LoaderPosition p) {
    if (!(loader.position() == p)) loader.seek(p);
    return loader.next().arrays;
  }
  const TrainConfig& c_;
  const Tokenizer& tokenizer_;
  std::vector<std::string> classes_;
  Counts counts_;
  std::shared_ptr<const Dataset> learned_, held_out_;
  std::optional<DataLoader> loader_, held_loader_;
};

class PretrainedTexts final : public PretrainedClassifier {
 public:
  explicit PretrainedTexts(TrainConfig& c)
      : c_(c), weights_(Weights::open(c.model.weights)), columns_(columns(c.data)), classifier_(opened(c)) {
    const EncoderConfig& has = classifier_.config();
    tokenizer_ = llm::model_tokenizer(weights_, has.vocab, {});
    if (!tokenizer_)
      throw file_error("train", c.model.weights,
                       "it has no tokenizer, and no tokenizer.json, tokenizer.model or tokenizer.bin lies beside it");
    if (c.model.length > has.longest)
      throw Error("train", str_cat("model.length is ", c.model.length, ", ", in_quotes(c.model.weights),
                                   " was made for ", has.longest, " tokens"));
    if (c.model.length == 0) c.model.length = std::min<i64>(has.longest, 128);
    const Tokens learn = tokens(c.data.train[0], rows_);
    const Tokens hold = c.data.test.empty() ? Tokens() : tokens(c.data.test[0], test_rows_);
    for (const Tokens* part : {&learn, &hold})
      for (const Encoding& e : part->rows) counts_.length = std::max<i64>(counts_.length, std::ssize(e.ids));
    counts_.cut = learn.cut + hold.cut;
    split(learn, hold);
    rows_ = test_rows_ = {};
    // the classes are settings that the data decide
    for (const std::string& word : classifier_.classes()) c.decisive.push_back(str_cat("class ", printable(word, 200)));
  }

  AnyClassifier module() const override { return AnyClassifier(PackedTexts{classifier_}); }
  Shape sample() const override { return {2, counts_.length}; }
  DType sample_type() const override { return DType::I32; }
  std::unique_ptr<TrainingData> data() const override {
    return std::make_unique<TextSamples>(c_, *learn_, *hold_, *tokenizer_, classifier_.classes(), counts_);
  }

  std::string load(Trainer& trainer) const override {
    std::vector<std::string> anew = classifier_.new_layers();
    for (const std::string& layer : adapter_layers(trainer)) anew.push_back(layer);
    trainer.load_parameters(
        weights_, [&](const std::string& path) { return classifier_.name_in_file(path); }, anew);
    std::string layers;
    for (const auto& p : classifier_.parameters()) {
      const std::string& ours = classifier_.path_of(p.path);
      if (std::ranges::count(classifier_.new_layers(), ours.substr(0, ours.rfind('.'))) && p.path.ends_with(".weight"))
        layers += (layers.empty() ? ", but new ones for " : ", ") + p.path.substr(0, p.path.rfind('.'));
    }
    return str_cat("weights     from ", in_quotes(c_.model.weights), layers, "\n");
  }

  void save(const Trainer& trainer, const std::string& folder, DType type) const override {
    const MergedValues values(trainer);
    std::map<std::string, std::string> inputs{{"lightcone.text", c_.data.text},
                                              {"lightcone.length", std::to_string(c_.model.length)}};
    if (!c_.data.text_pair.empty()) inputs["lightcone.text_pair"] = c_.data.text_pair;
    save_text_classifier(classifier_, weights_, folder, values, type, inputs);
  }
  void save_adapters(const Trainer& trainer, const std::string& folder) const override {
    if (trainer.adapters().empty()) return;
    save_text_classifier_adapters(
        classifier_, folder, trainer.adapters(), [&](const std::string& name) { return trainer.values(name); },
        absolute_path(c_.model.weights));
  }

 private:
  static TextColumns columns(const DataConfig& d) { return {d.format, d.text, d.text_pair, d.label}; }

  TextClassifier opened(const TrainConfig& c) {
    rows_ = read_text_rows("train", c.data.train[0], columns_);
    if (!c.data.test.empty()) test_rows_ = read_text_rows("train", c.data.test[0], columns_);
    const std::vector<std::string> classes = classes_of(rows_.labels);
    if (classes.size() < 2 || std::ssize(classes) > 1 << 16)
      throw file_error("train", c.data.train[0], "the column ", in_quotes(c.data.label), " has ", classes.size(),
                       classes.size() == 1 ? " class" : " classes", ": a classifier tells 2 to 65536 apart");
    return TextClassifier::of(weights_, classes,
                              {.lora_rank = c.model.lora_rank,
                               .lora_alpha = c.model.lora_alpha,
                               .lora_targets = c.model.lora_targets,
                               .dropout = c.model.own_dropout});
  }

  Tokens tokens(const std::string& path, const TextRows& rows) const {
    Tokens t;
    const i64 most = c_.model.length;
    t.rows = encoded("train", path, rows, *tokenizer_, std::numeric_limits<std::int32_t>::max());
    const i64 kinds = std::max<i64>(1, classifier_.config().types);
    for (std::size_t k = 0; k < t.rows.size(); ++k) {
      if (std::ssize(t.rows[k].ids) > most) ++t.cut;
      const auto place = std::ranges::find(classifier_.classes(), rows.labels[k]);
      if (place == classifier_.classes().end())
        throw file_error("train", path, "line ", rows.lines[k], ": the label ", in_quotes(rows.labels[k]),
                         " is none of the classes to learn from");
      t.classes.push_back(place - classifier_.classes().begin());
      if (kinds > 1 && std::ranges::any_of(t.rows[k].type_ids, [&](int id) { return id < 0 || id >= kinds; }))
        throw file_error("train", c_.model.weights, "its tokenizer numbers texts beyond the ", kinds,
                         " kinds of tokens (token_type_ids) of the model");
    }
    if (t.cut > 0) t.rows = encoded("train", path, rows, *tokenizer_, most);
    return t;
  }

  Dataset dataset(const Tokens& t) const {
    const auto n = std::ssize(t.rows), length = counts_.length;
    Array x = Array::zeros(DType::I32, {n, 2, length}), y = Array::zeros(DType::I64, {n});
    const auto to = x.values<std::int32_t>();
    std::ranges::copy(t.classes, y.values<i64>().begin());
    const EncoderConfig& has = classifier_.config();
    const auto pad = static_cast<std::int32_t>(has.padding);
    for (std::size_t k = 0; k < t.rows.size(); ++k) {
      const auto ids = to.subspan(2 * k * static_cast<std::size_t>(length), static_cast<std::size_t>(length));
      const auto kinds = to.subspan((2 * k + 1) * static_cast<std::size_t>(length), static_cast<std::size_t>(length));
      std::ranges::fill(ids, pad), std::ranges::fill(kinds, kPadding);
      std::ranges::copy(t.rows[k].ids, ids.begin());
      std::ranges::fill(kinds.first(t.rows[k].ids.size()), 0);
      if (has.types > 1) std::ranges::copy(t.rows[k].type_ids, kinds.begin());
    }
    return Dataset(Arrays{{"x", std::move(x)}, {"y", std::move(y)}});
  }

  void split(const Tokens& learn, const Tokens& hold) {
    if (hold.rows.empty() && !c_.data.test.empty()) throw file_error("train", c_.data.test[0], "it has no texts");
    if (!c_.data.test.empty()) learn_ = dataset(learn), hold_ = dataset(hold);
    else std::tie(learn_, hold_) = held_out_apart(dataset(learn), c_);
    if (c_.held_out_samples > 0 && hold_->size() > c_.held_out_samples) hold_ = hold_->part(0, c_.held_out_samples);
  }

  const TrainConfig& c_;
  Weights weights_;
  TextColumns columns_;
  TextRows rows_ = {}, test_rows_ = {};
  TextClassifier classifier_;
  std::shared_ptr<const Tokenizer> tokenizer_ = {};
  std::optional<Dataset> learn_ = {}, hold_ = {};
  Counts counts_ = {};
};

}  // namespace

std::unique_ptr<PretrainedClassifier> pretrained_texts(TrainConfig& c) { return std::make_unique<PretrainedTexts>(c); }

}  // namespace lc::tool
