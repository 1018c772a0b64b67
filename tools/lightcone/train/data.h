// The data of a configuration, read and checked before the first step.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "config.h"
#include "description.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/io/text/chat_template.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc::tool {

// The batches of a run. A step's batch depends on the configuration and the step alone, and of it each rank makes its
// part.
class TrainingData {
 public:
  virtual ~TrainingData() = default;
  virtual Arrays batch(i64 step) = 0;  // this rank's "x" and "y"; steps must be requested in order
  virtual i64 held_out() const = 0;    // samples
  // Returns held-out samples first to first + batch; after the last one the contents are arbitrary.
  virtual Arrays held_out_batch(i64 first) = 0;
  virtual std::string summary() const = 0;                                 // for people, in one or several lines
  virtual const ModelDescription* description() const { return nullptr; }  // null for language models
  virtual const Tokenizer* tokenizer() const { return nullptr; }           // null for other models
};

// Splits off the share data.held_out of the samples, in an order that train.seed decides: what is learned from, and
// what is held out. Throws Error if too few samples are left.
std::pair<Dataset, Dataset> held_out_apart(const Dataset& all, const TrainConfig& c);

// Returns bytes as they are, and numbers of any type as f32.
Array as_inputs(const Array& a);

// Reads all samples. Throws Error if files are missing or damaged, samples have another shape than the configuration's,
// labels are out of range, numbers are not finite, or there are too few samples.
std::unique_ptr<TrainingData> read_samples(const TrainConfig& c);
// Reads a text. `tokenizer`: the one of the checkpoint that training continues; null: it is made from the text. Throws
// Error if the text does not fit the vocabulary.
std::unique_ptr<TrainingData> read_texts(const TrainConfig& c, std::shared_ptr<const Tokenizer> tokenizer);
// Reads lines of JSON: {"messages": [{"role": ..., "content": ...}]}, {"prompt": ..., "completion": ...} or {"text":
// ...}. "y" is -100 where a token is not learned. `source`: the checkpoint's chat template.
std::unique_ptr<TrainingData> read_chats(const TrainConfig& c, std::shared_ptr<const Tokenizer> tokenizer,
                                         const ChatTemplateSource& source);

}  // namespace lc::tool
