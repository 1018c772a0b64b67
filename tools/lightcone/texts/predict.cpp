#include "predict.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "../answers.h"
#include "../device.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/llm/model_tokenizer.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/load/load_model.h"
#include "lightcone/ops/ops.h"
#include "rows.h"

namespace lc::tool {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kBatch = 32;

// A text classifier with its tokenizer.
class Classifier {
 public:
  Classifier(const std::string& folder, const PredictOptions& o)
      : weights_(Weights::open(folder)),
        model_(load_model(weights_, {.batch = kBatch, .outputs = std::vector<std::string>()})) {
    const ConfigFile config(weights_);
    const auto logits = model_.outputs.find("logits");
    if (logits == model_.outputs.end() || logits->second.rank() != 2 || !model_.inputs.contains("input_ids"))
      throw file_error("predict", folder, "a ", model_.architecture, " is no classifier of texts");
    const auto classes = logits->second.extent(1).constant();
    outputs_ = {.classes = model_.labels, .regression = classes == 1};
    if (classes != std::ssize(model_.labels)) outputs_.classes.resize(static_cast<std::size_t>(*classes));
    const bool several = config.text("problem_type") == "multi_label_classification";
    const Tensor& x = logits->second;
    (outputs_.regression ? x : several ? sigmoid(x) : softmax(x, 1)).retrieve("out");
    program_ = model_.program(compiler_for(open_device(o.device), {.threads = o.threads}));
    print_notes(program_);
    length_ = model_.limits.at("length");
    if (const auto own = real_of<double>(said("length", "")); own && *own >= 1)  // as it learned
      length_ = static_cast<std::int64_t>(std::min(static_cast<double>(length_), *own));
    const StoredTensor* table = model_.weights.find("tokens.weight");
    tokenizer_ = llm::model_tokenizer(weights_, table && !table->shape.empty() ? table->shape.front() : 0, {});
    if (!tokenizer_) throw file_error("predict", folder, "there is no tokenizer beside the model");
  }

  // What `lightcone train` wrote beside the weights.
  std::string said(const std::string& key, const std::string& otherwise) const {
    const auto found = weights_.metadata().find("lightcone." + key);
    return found == weights_.metadata().end() ? otherwise : found->second;
  }
  const Outputs& outputs() const { return outputs_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  std::int64_t length() const { return length_; }

  // Returns the outputs of each text. Texts of similar lengths are computed together.
  std::vector<std::vector<float>> run(const std::vector<Encoding>& all) const {
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t k) { return all[k].ids.size(); });
    std::vector<std::vector<float>> out(all.size());
    Context context(program_);
    for (std::size_t at = 0; at < order.size(); at += kBatch)
      batch(context, std::span(order).subspan(at, std::min<std::size_t>(kBatch, order.size() - at)), all, out);
    return out;
  }

 private:
  void batch(Context& c, std::span<const std::size_t> texts, const std::vector<Encoding>& all,
             std::vector<std::vector<float>>& out) const {
    const std::size_t longest = all[texts.front()].ids.size();
    std::vector<std::int64_t> ids(texts.size() * longest, model_.padding), mask(ids.size(), 0), kinds(ids.size(), 0);
    for (std::size_t row = 0; row < texts.size(); ++row) {
      const Encoding& e = all[texts[row]];
      const auto to = static_cast<std::ptrdiff_t>(row * longest);
      std::ranges::copy(e.ids, ids.begin() + to);
      std::ranges::copy(e.type_ids, kinds.begin() + to);
      std::fill_n(mask.begin() + to, e.ids.size(), 1);
    }
    if (program_.has_symbol("batch")) c.bind("batch", std::ssize(texts));
    if (program_.has_symbol("length")) c.bind("length", static_cast<std::int64_t>(longest));
    c.set("input_ids", ids);
    if (model_.inputs.contains("attention_mask")) c.set("attention_mask", mask);
    if (model_.inputs.contains("token_type_ids")) c.set("token_type_ids", kinds);
    const std::vector<float> v = c.run().get("out");
    const std::size_t each = v.size() / texts.size();
    for (std::size_t row = 0; row < texts.size(); ++row)
      out[texts[row]].assign(v.begin() + static_cast<std::ptrdiff_t>(row * each),
                             v.begin() + static_cast<std::ptrdiff_t>((row + 1) * each));
  }

  Weights weights_;
  LoadedModel model_;
  Outputs outputs_;
  Program program_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::int64_t length_ = 0;
};

std::string format_of(const std::string& path) {
  const std::string end = fs::path(path).extension().string();
  return end == ".csv" ? "csv" : end == ".jsonl" ? "jsonl" : "lines";
}

}  // namespace

std::string text_classifier_folder(const std::string& model) {
  std::error_code none;
  for (const fs::path& folder : {fs::path(model), fs::path(model) / "model"}) {
    if (!fs::is_regular_file(folder / "config.json", none)) continue;
    const ConfigFile config((folder / "config.json").string(), ReadOptions{});
    const std::vector<std::string> classes = config.texts("architectures");
    if (!classes.empty() && classes.front().ends_with("ForSequenceClassification")) return folder.string();
  }
  return "";
}

void predict_texts(const std::string& folder, const PredictOptions& o) {
  const Classifier classifier(folder, o);
  TextColumns columns{.text = o.text.empty() ? classifier.said("text", "text") : o.text,
                      .pair = o.text_pair.empty() ? classifier.said("text_pair", "") : o.text_pair,
                      .label = {}};
  Answers answers(classifier.outputs(), o);
  const std::vector<std::string> standard_input{"-"};
  for (const std::string& path : o.inputs.empty() ? standard_input : o.inputs) {
    columns.format = format_of(path);
    if (columns.format == "lines" && !columns.pair.empty())
      throw file_error("predict", path, "the model takes two texts, and a line is one: give it CSV or lines of JSON");
    const TextRows rows = read_text_rows("predict", path, columns);
    const auto out = classifier.run(encoded("predict", path, rows, classifier.tokenizer(), classifier.length()));
    for (std::size_t k = 0; k < out.size(); ++k) answers.add({path, static_cast<std::int64_t>(k)}, out[k]);
  }
  answers.write();
}

}  // namespace lc::tool
