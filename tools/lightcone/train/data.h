// The data of a configuration, read and looked at before the first step.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config.h"
#include "description.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/io/text/chat_template.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc::tool {

// Batches of a run: that of a step is a function of the configuration and the step alone.
class TrainingData {
 public:
  virtual ~TrainingData() = default;
  virtual Arrays batch(i64 step) = 0;  // "x" and "y"; steps are asked for one after another
  virtual i64 held_out() const = 0;    // samples
  // Samples first to first + batch of what is held out; behind the last one anything.
  virtual Arrays held_out_batch(i64 first) = 0;
  virtual std::string summary() const = 0;                                 // a line for people, or several
  virtual const ModelDescription* description() const { return nullptr; }  // not of language models
  virtual const Tokenizer* tokenizer() const { return nullptr; }           // of language models
};

// Bytes, or numbers of any type as f32.
Array as_inputs(const Array& a);

// Reads everything. Error, in a sentence, for files that are missing or damaged, samples of another shape than the
// configuration says, labels out of range, numbers that are not finite, too few samples, and a text that does not fit
// the vocabulary.
std::unique_ptr<TrainingData> read_samples(const TrainConfig& c);
// `tokenizer`: of the checkpoint that training goes on from; null where the text makes one.
std::unique_ptr<TrainingData> read_texts(const TrainConfig& c, std::shared_ptr<const Tokenizer> tokenizer);
// Lines of JSON: {"messages": [{"role": ..., "content": ...}]}, {"prompt": ..., "completion": ...} or {"text": ...}.
// "y" is -100 where a token is not learned. `source`: the checkpoint's chat template.
std::unique_ptr<TrainingData> read_chats(const TrainConfig& c, std::shared_ptr<const Tokenizer> tokenizer,
                                         const ChatTemplateSource& source);

}  // namespace lc::tool
