// A model of a configuration with its programs: one takes steps, one evaluates.
#pragma once

#include <memory>
#include <optional>

#include "../device.h"
#include "classifier.h"
#include "config.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/models/llama/llama_model.h"
#include "lightcone/train/trainer.h"
#include "pretrained.h"
#include "ranks.h"

namespace lc::tool {

// The result of an evaluation, over all held-out samples.
struct Measured {
  double loss = 0;   // mean per row (a sample, or a token)
  double right = 0;  // fraction of rows that are right; for a regression the coefficient of determination, R^2
};

// The graph of a training step as it is written: nothing is compiled, and no parameter has a value.
Graph step_graph(const TrainConfig& c, const Pretrained* first, const PretrainedClassifier* classifier);

class Task {
 public:
  // Compiles; reads no data. `checked` checks every value. `first`: the checkpoint of a language model, or null;
  // `classifier`: that of a classifier. With several ranks all functions but those of files are called on all of them.
  Task(const TrainConfig& c, const Pretrained* first, const PretrainedClassifier* classifier, int threads,
       const DeviceChoice& device, bool checked, const RunRanks& ranks = {});

  // Returns parameters, exact memory and arithmetic, as lines for people.
  std::string known_beforehand() const;
  // Loads first values from a file, except for layers that begin anew, and returns a line for people. Throws Error if
  // the file does not fit.
  std::string load_weights();
  // Takes one step on this rank's part of a batch ("x" and "y"); returns the loss of the whole batch.
  float step(const Arrays& batch);
  // Copies the parameters to the evaluating program.
  void begin_evaluation();
  // Evaluates a whole batch, of which `samples` count.
  void evaluate(const Arrays& batch, i64 samples);
  Measured end_evaluation() const;

  Trainer& trainer() const { return *trainer_; }
  const Graph& graph() const { return *graph_; }  // the graph of a step, as it was written
  i64 rows_of_a_sample() const { return rows_; }  // tokens, or 1
  // Writes the adapters of a model from a checkpoint as a folder for Hugging Face's peft. Does nothing if it has none.
  void save_adapters(const std::string& folder) const;
  // Writes a language model with its current values; those of adapters are added to the weights.
  void save_language_model(const std::string& path, const Vocabulary& tokens, DType type,
                           const std::string& name) const;
  // Writes a classifier that began from a checkpoint as a folder of the checkpoint's kind.
  void save_classifier(const std::string& folder, DType type) const { classifier_->save(*trainer_, folder, type); }

 private:
  template <class M>
  void build(const M& module, const Shape& x, DType x_type, const Shape& y, DType y_type, const Compiler& compiler,
             bool checked, const RunRanks& ranks);
  const TrainConfig& c_;
  const Pretrained* first_;
  const PretrainedClassifier* classifier_;
  i64 rows_ = 1;
  std::unique_ptr<Graph> graph_, other_graph_;
  std::unique_ptr<nn::ModelBase> model_, other_model_;
  std::unique_ptr<Trainer> trainer_;
  Program evaluation_;
  std::optional<Context> context_;
  std::optional<LlamaModel> llama_;
  double loss_ = 0, right_ = 0, sum_ = 0, squares_ = 0;
  i64 counted_ = 0;
};

}  // namespace lc::tool
