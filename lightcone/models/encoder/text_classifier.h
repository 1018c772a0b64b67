// TextClassifier: an encoder of texts of BERT's family that goes on learning as a classifier, with or without adapters.
// It has the layers and the weights of load_model().
//
//   const Weights base = Weights::open("bert-base-uncased");
//   const TextClassifier net = TextClassifier::of(base, {"negative", "positive"});
//   Graph g;
//   nn::Model<TextClassifier> model(g, net);
//   ... trace(model, [](auto& m, const Tensor& ids, const Tensor& mask, const Tensor& types, const Tensor& y) {
//         return cross_entropy(m(ids, mask, types), y);
//       }, ids, mask, types, y);                                    // ids, mask and types i64 [batch, length]
//   trainer.load_parameters(base, [&](const std::string& path) { return net.name_in_file(path); }, net.new_layers());
//
// save_text_classifier() writes a folder that transformers and load_model() open.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/llm/parameters.h"
#include "lightcone/models/encoder/encoder.h"

namespace lc {

// Options of TextClassifier::of().
struct TextClassifierOptions {
  std::int64_t lora_rank = 0;  // above 0: beside the head only adapters are trained
  double lora_alpha = 16;
  // The layers that get adapters, by the last parts of their names in Hugging Face's model ("query",
  // "attention.output.dense", "q_lin"); empty: queries and values.
  std::vector<std::string> lora_targets = {};
  std::optional<double> dropout = {};    // all probabilities of dropout; unset: as config.json says
  std::vector<std::string> ignore = {};  // keys of config.json that are taken for neutral, as in LoadModelOptions
};

// A classifier of texts as a module for training.
class TextClassifier {
 public:
  // Makes the classifier for `classes` of a checkpoint of BERT's family with any head. The head of the file is kept if
  // it is one for the same classes in any order, or if its classes have no names (LABEL_0, ...) and these are "0", "1",
  // ...; otherwise a new one is made, and for a BERT without a pooler that layer, too. Throws Error for the reasons of
  // load_model(), for fewer than two classes, and for a target that names no layer.
  static TextClassifier of(const Weights& w, std::span<const std::string> classes, const TextClassifierOptions& o = {});
  // New layers begin with normal(0, initializer_range) and biases with 0, as in transformers.
  void visit(nn::Visitor& v);
  // Ids, mask and kinds as Encoder takes them: i64 [batch, length] -> logits f32 [batch, classes].
  template <class Mode>
  Tensor operator()(const Tensor& ids, const Tensor& mask, const Tensor& types, Mode& mode,
                    const nn::At& at = nn::At::current()) const {
    const EncoderDropout& p = config().dropout;
    Random* const random = nn::dropout_rng(mode, std::max({p.hidden, p.attention, p.head}));
    return encoder_.run(ids, mask, types, random, at).at("logits");
  }

  const EncoderConfig& config() const { return encoder_.config(); }
  // The classes by the index of their logits, and what config.json calls them.
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<std::string>& labels() const { return config().labels; }
  // The layers that begin with new values, for Trainer::load_parameters().
  const std::vector<std::string>& new_layers() const { return new_layers_; }
  // The name of a parameter in the checkpoint that the classifier was made of.
  std::string name_in_file(const std::string& path) const { return weights_.name_in_file(path); }
  // The parameters by the names of transformers' class, in the order of visit().
  const std::vector<llm::ParameterInfo>& parameters() const { return parameters_; }
  // The parameter's path in this module by the name of transformers' class.
  const std::string& path_of(const std::string& name) const { return paths_.at(name); }

 private:
  TextClassifier(EncoderConfig c, WeightTable weights) : encoder_(std::move(c)), weights_(std::move(weights)) {}
  bool is_new(std::string_view layer) const;
  void check_weights();

  Encoder encoder_;
  WeightTable weights_;
  double range_ = 0.02;
  std::vector<std::string> classes_, new_layers_;
  std::optional<nn::LoraOptions> lora_ = {};
  std::vector<llm::ParameterInfo> parameters_ = {};
  std::map<std::string, std::string> paths_ = {};
};

// Writes a folder for transformers' from_pretrained() and load_model(): config.json with the labels, model.safetensors
// of one type (F32, F16 or BF16) with `metadata`, and the tokenizer of the folder `base` that the classifier was made
// of. `values` gives the values by the paths of the module (Trainer::merged). Throws Error for another type, and if a
// file cannot be written.
void save_text_classifier(const TextClassifier& m, const Weights& base, const std::string& folder,
                          const llm::ParameterValues& values, DType type = DType::F32,
                          const std::map<std::string, std::string>& metadata = {});
// Writes the adapters and the head as a folder for peft (task_type SEQ_CLS). `path` is the base model's.
void save_text_classifier_adapters(const TextClassifier& m, const std::string& folder,
                                   std::span<const nn::Adapter> adapters, const llm::ParameterValues& values,
                                   const std::string& path = "");

}  // namespace lc
