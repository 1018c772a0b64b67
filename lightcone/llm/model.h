// Model: a loaded language model with its tokenizer, as Chat needs it. Llama (models/llama/llama.h) is one.
#pragma once

#include <cstdint>
#include <memory>

#include "lightcone/io/text/chat_template.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/llm/decoder.h"

namespace lc::llm {

// A language model with its text format. It is immutable: any number of decoders and threads may use it at once.
class Model {
 public:
  virtual ~Model() = default;

  // Throws Error if the model has none.
  virtual const Tokenizer& tokenizer() const = 0;
  // Returns the model's own chat template. Its text is "" if the model has none.
  virtual const ChatTemplateSource& chat_template() const = 0;
  virtual bool ends(int token) const = 0;           // true for an end-of-text token
  virtual std::int64_t context_length() const = 0;  // maximum length of a sequence
  // Returns a decoder with an empty sequence. It may outlive this object.
  virtual std::unique_ptr<Decoder> decoder() const = 0;

 protected:
  Model() = default;
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;
};

}  // namespace lc::llm
