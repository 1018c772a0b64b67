// A model of a configuration with its programs: one takes steps, one evaluates.
#pragma once

#include <memory>
#include <optional>

#include "../device.h"
#include "config.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/models/llama/llama_model.h"
#include "lightcone/train/trainer.h"
#include "pretrained.h"

namespace lc::tool {

// What an evaluation found, over all held-out samples.
struct Measured {
  double loss = 0;   // mean of a row (a sample, or a token)
  double right = 0;  // the part of rows that is right; of a regression the coefficient of determination, R^2
};

class Task {
 public:
  // Compiles; no data is read. `checked` looks at every value. `first`: the checkpoint of a language model, or null.
  Task(const TrainConfig& c, const Pretrained* first, int threads, const DeviceChoice& device, bool checked);

  // Parameters, exact memory, arithmetic: lines for people.
  std::string known_beforehand() const;
  // First values from a file, but for what begins anew; a line for people. Error where the file does not fit.
  std::string load_weights();
  // One step on a batch ("x" and "y"); gives its loss.
  float step(const Arrays& batch);
  // Parameters go to the other program, then batches, of which so many samples count.
  void begin_evaluation();
  void evaluate(const Arrays& batch, i64 samples);
  Measured end_evaluation() const;

  Trainer& trainer() const { return *trainer_; }
  const Graph& graph() const { return *graph_; }  // of a step, as it was written
  i64 rows_of_a_sample() const { return rows_; }  // tokens, or 1
  // The language model's adapters: a folder as Hugging Face's peft reads it. Nothing where it has none.
  void save_adapters(const std::string& folder) const;
  // A language model with the values it has now, those of adapters added to the weights.
  void save_language_model(const std::string& path, const Vocabulary& tokens, DType type,
                           const std::string& name) const;

 private:
  template <class M>
  void build(const M& module, const Shape& x, DType x_type, const Shape& y, DType y_type, const Compiler& compiler,
             bool checked);
  const TrainConfig& c_;
  const Pretrained* first_;
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
