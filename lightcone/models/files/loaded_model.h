// LoadedModel: what load_model() makes of a checkpoint: a graph with named inputs and outputs, and its weights.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/io/read_options.h"
#include "lightcone/models/files/weight_table.h"
#include "lightcone/nn/module.h"

namespace lc {

// Options of load_model().
struct LoadModelOptions {
  // Keys of config.json that change nothing of what the model computes, although they are not known:
  // "text_config.my_key" for one within a section.
  std::vector<std::string> ignore = {};
  std::int64_t batch = 64;   // largest number of samples at once, the bound of the symbol "batch"
  bool fixed_batch = false;  // models of pictures: there are always so many, and "batch" is no symbol
  // Models some of whose inputs may be left out: those that the graph has (SAM: models/sam/sam.h).
  std::optional<std::vector<std::string>> inputs = {};
  // The outputs that a run computes; unset: all. Others stay in LoadedModel::outputs, to compute more from.
  std::optional<std::vector<std::string>> outputs = {};
  // Models of pictures: the size of a picture; 0: what config.json says. A table of positions for another size is an
  // Error, unless it is to be resized (transformers' argument of the same name).
  std::int64_t height = 0, width = 0;
  bool interpolate_pos_encoding = false;
  ReadOptions read = {};
};

// A model in a graph. Its tensors are valid as long as it exists; program() may be called any number of times.
class LoadedModel {
 public:
  LoadedModel(std::string type, WeightTable weights) : type(std::move(type)), weights(std::move(weights)) {}

  std::string type;                      // config.json's model_type: "bert"
  std::string architecture = {};         // the class of transformers: "BertForSequenceClassification"
  std::vector<std::string> labels = {};  // names of the classes of a classifier
  std::map<std::string, Tensor> inputs = {}, outputs = {};  // by name, as the model's header describes them
  std::map<std::string, std::int64_t> limits = {};          // "length": the largest value of a symbol
  std::int64_t padding = 0;                                 // the id that fills up shorter texts of a batch
  WeightTable weights;                                      // by the names of the graph's parameters

  // The graph. More can be computed from `outputs` before program() is called.
  Graph& graph() const { return *graph_; }
  // Compiles the graph and loads the weights. Results are the outputs, by their names, and what else was retrieved.
  Program program(const Compiler& compiler, const CompileOptions& o = {}) const {
    Program p = compile(*graph_, compiler, o);
    for (const auto& [model, from] : parts_) from.load(p);
    return p;
  }

  // Adds a module to the graph, with parameters stored as the file stores them. Families of models call it. What is
  // put on top of a model has weights and a path of its own.
  template <class M>
  const M& add(M module) {
    return add(std::move(module), "", weights);
  }
  template <class M>
  const M& add(M module, const std::string& path, const WeightTable& from) {
    auto model =
        std::make_unique<nn::Model<nn::Stored<M>>>(*graph_, nn::Stored<M>(std::move(module), from.storage()), path);
    const M& made = model->module().module;
    parts_.emplace_back(std::move(model), from);
    return made;
  }
  // The tensor of a parameter of the graph in the file it is of, or null.
  const StoredTensor* weight(std::string_view name) const {
    for (const auto& [model, from] : parts_)
      if (const StoredTensor* t = from.find(name)) return t;
    return nullptr;
  }
  // The values of the graph's parameters, by name, as export_onnx() takes them. They point into the file, or into
  // memory of this model where only Weights::read() can read them, and are valid as long as it exists.
  std::map<std::string, ArrayView, std::less<>> values();

  // Adds an output. Families of models call it.
  void give(const std::string& name, const Tensor& value) { outputs.emplace(name, value); }
  // Makes the outputs that `o` asks for results of the graph. Throws Error for one that the model has not.
  void retrieve(const LoadModelOptions& o);

 private:
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  std::vector<std::pair<std::unique_ptr<nn::ModelBase>, WeightTable>> parts_;
  std::map<std::string, std::vector<float>> converted_;  // f32 numbers that values() points to
};

}  // namespace lc
