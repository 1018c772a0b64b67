// A classifier that training continues from a published checkpoint: what each kind of them (of texts, of pictures)
// gives to the run.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data.h"
#include "lightcone/nn/module.h"
#include "lightcone/train/trainer.h"

namespace lc::tool {

// A module from samples [n, ...] to [n, classes] of which the type is not known. Copies are modules of their own.
class AnyClassifier {
 public:
  template <class M>
  explicit AnyClassifier(M module) : module_(std::make_unique<Of<M>>(std::move(module))) {}
  AnyClassifier(const AnyClassifier& other) : module_(other.module_->copy()) {}
  AnyClassifier& operator=(const AnyClassifier&) = delete;
  void visit(nn::Visitor& v) { module_->visit(v); }
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    if constexpr (nn::is_training<Mode>) return module_->trained(x, mode);
    else return module_->call(x);
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual void visit(nn::Visitor& v) = 0;
    virtual Tensor trained(const Tensor& x, nn::Training& mode) const = 0;
    virtual Tensor call(const Tensor& x) const = 0;
  };
  template <class M>
  struct Of final : Base {
    explicit Of(M m) : module(std::move(m)) {}
    std::unique_ptr<Base> copy() const override { return std::make_unique<Of>(module); }
    void visit(nn::Visitor& v) override { module.visit(v); }
    Tensor trained(const Tensor& x, nn::Training& mode) const override {
      return nn::apply(module, mode, nn::At::current(), x);
    }
    Tensor call(const Tensor& x) const override {
      nn::Inference mode;
      return nn::apply(module, mode, nn::At::current(), x);
    }
    M module;
  };
  std::unique_ptr<Base> module_;
};

class PretrainedClassifier {
 public:
  virtual ~PretrainedClassifier() = default;
  // Opens model.weights and reads the data, which say the classes; null for other kinds of models. Fills in what the
  // configuration leaves open.
  static std::unique_ptr<PretrainedClassifier> of(TrainConfig& c);

  virtual AnyClassifier module() const = 0;
  virtual Shape sample() const = 0;  // the shape of one input
  virtual DType sample_type() const = 0;
  virtual std::unique_ptr<TrainingData> data() const = 0;
  virtual std::string load(Trainer& trainer) const = 0;  // loads first values and returns a line for people
  // Writes the classifier as the folder of the checkpoint's kind, and its adapters, if it has any, for peft.
  virtual void save(const Trainer& trainer, const std::string& folder, DType type) const = 0;
  virtual void save_adapters(const Trainer& trainer, const std::string& folder) const = 0;
};

// The kinds: a folder of Hugging Face's with an encoder, and rows of texts; one with a network of pictures, and a
// folder of pictures for each class.
std::unique_ptr<PretrainedClassifier> pretrained_texts(TrainConfig& c);
std::unique_ptr<PretrainedClassifier> pretrained_pictures(TrainConfig& c);

// The values of a trainer's parameters by their paths, with the products of adapters added.
class MergedValues {
 public:
  explicit MergedValues(const Trainer& trainer);
  std::span<const float> operator()(const std::string& path) const;

 private:
  const Trainer& trainer_;
  std::map<std::string, std::vector<float>> merged_;
};
// The layers of a trainer's adapters, which no checkpoint has.
std::vector<std::string> adapter_layers(const Trainer& trainer);
// The path of a checkpoint as peft looks it up from any folder.
std::string absolute_path(const std::string& path);

}  // namespace lc::tool
