// PictureClassifier: a classifier of pictures of any family of transformers' that goes on learning from a published
// checkpoint, with or without adapters: ViT, DeiT, DINOv2, Swin, SegFormer's encoder, ConvNeXt, ResNet, RegNet,
// EfficientNet. It computes what load_model() computes for the same file.
//
//   const Weights base = Weights::open("vit-base-patch16-224");
//   const PictureClassifier net = PictureClassifier::of(base, {"cat", "dog"}, {.batch = 16});
//   Graph g;
//   nn::Model<PictureClassifier> model(g, net);
//   ... trace(model, [](auto& m, const Tensor& pictures, const Tensor& y) { return cross_entropy(m(pictures), y); },
//             pictures, y);
//   trainer.load_parameters(net.weights(), [&](const std::string& path) { return net.name_in_file(path); });
//
// Statistics of batch norms stay those of the file, as in torchvision.ops.FrozenBatchNorm2d; dropout and stochastic
// depth of config.json are not applied. save_picture_classifier() writes a folder that transformers and load_model()
// open.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/llm/parameters.h"
#include "lightcone/models/classify/loaded_module.h"

namespace lc {

// Options of PictureClassifier::of().
struct PictureClassifierOptions {
  std::int64_t batch = 1;              // the number of pictures of each call
  std::int64_t height = 0, width = 0;  // 0: those of config.json
  bool interpolate_pos_encoding = false;
  std::int64_t seed = 0;       // a new head begins with values that it decides
  std::int64_t lora_rank = 0;  // above 0: beside the head only adapters are trained
  double lora_alpha = 16;
  // The layers that get adapters, by the last parts of their names in Hugging Face's model ("query",
  // "attention.output.dense", "pwconv1"); empty: queries and values, and of ConvNeXt both layers after a convolution.
  std::vector<std::string> lora_targets = {};
  std::vector<std::string> ignore = {};  // keys of config.json that are taken for neutral, as in LoadModelOptions
};

// A classifier of pictures as a module for training.
class PictureClassifier {
 public:
  // Makes the classifier for `classes` of a checkpoint with or without a head. The head of the file is kept if it is
  // one for the same classes in any order, or if its classes have no names (LABEL_0, ...) and these are "0", "1", ...;
  // otherwise a new one begins with normal(0, initializer_range) and biases of 0. Throws Error for the reasons of
  // load_model(), for a family without such a class, for fewer than two classes, and for a target that names no layer
  // with a matrix.
  static PictureClassifier of(const Weights& w, std::span<const std::string> classes,
                              const PictureClassifierOptions& o = {});
  void visit(nn::Visitor& v);
  // Pictures f32 [batch, channels, height, width] as ImageProcessor makes them -> logits f32 [batch, classes].
  Tensor operator()(const Tensor& pictures) const { return body_(pictures); }

  const std::string& architecture() const { return model_->architecture; }   // the class of transformers
  const std::vector<std::string>& classes() const { return classes_; }       // by the index of their logits
  const std::vector<std::string>& labels() const { return model_->labels; }  // what config.json calls them
  bool has_new_head() const { return new_head_; }
  // The checkpoint in f32, with the new head if there is one, and the name of a parameter in it.
  const Weights& weights() const { return weights_; }
  std::string name_in_file(const std::string& path) const { return model_->weights.name_in_file(path); }
  // The parameters by the names of transformers' class, in the order of the graph; and their paths in this module.
  const std::vector<llm::ParameterInfo>& parameters() const { return parameters_; }
  const std::string& path_of(const std::string& name) const { return paths_.at(name); }
  const std::string& name_of(const std::string& path) const { return names_.at(path); }
  const std::string& head() const { return head_; }  // the name of the head in transformers' class

 private:
  PictureClassifier(Weights weights, std::shared_ptr<const LoadedModel> model)
      : weights_(std::move(weights)), model_(std::move(model)), body_(model_, "pixel_values", "logits") {}
  void name_parameters(std::string_view prefix);
  std::vector<std::string> layers_of(const PictureClassifierOptions& o) const;
  bool of_head(std::string_view path) const;

  Weights weights_;
  std::shared_ptr<const LoadedModel> model_;
  LoadedModule body_;
  std::string head_;
  bool new_head_ = false;
  std::vector<std::string> classes_ = {};
  std::optional<nn::LoraOptions> lora_ = {};
  std::vector<llm::ParameterInfo> parameters_ = {};
  std::map<std::string, std::string> paths_ = {}, names_ = {};
};

// Writes a folder for transformers' from_pretrained() and load_model(): config.json with the labels, model.safetensors
// of one type (F32, F16 or BF16), and the preprocessor_config.json of the folder `base` that the classifier was made
// of. `values` gives the values by the paths of the module (Trainer::merged). Throws Error for another type, and if a
// file cannot be written.
void save_picture_classifier(const PictureClassifier& m, const Weights& base, const std::string& folder,
                             const llm::ParameterValues& values, DType type = DType::F32);
// Writes the adapters and the head as a folder for peft. `path` is the base model's.
void save_picture_classifier_adapters(const PictureClassifier& m, const std::string& folder,
                                      std::span<const nn::Adapter> adapters, const llm::ParameterValues& values,
                                      const std::string& path = "");

}  // namespace lc
