// ProgramModel and ProgramDecoder: a language model that is one compiled program with a cache, whatever its
// architecture. Llama (models/llama/llama.h) and LanguageModel (models/language/language_model.h) are such.
//
// The program has the input "tokens" i64 [seq], the symbols "seq" (unless it runs one token at a time) and "past", the
// number of positions in its states (unless they have none), and the output "logits", f32 [vocabulary] of the last
// token or [seq, vocabulary].
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lightcone/llm/model.h"
#include "lightcone/runtime/program.h"

namespace lc::llm {

// The tokens and the states of one conversation with a program. A logit that is NaN is an Error of feed(), which names
// the layer of the first NaN. It is for one thread at a time.
class ProgramDecoder : public Decoder {
 public:
  // `owner` keeps what the program reads while the decoder exists.
  ProgramDecoder(const Program& program, const DecoderSizes& sizes, std::shared_ptr<const void> owner);
  Context& context() { return context_; }  // the context of the program

 protected:
  std::span<const float> step(std::span<const int> tokens, std::int64_t past) override;
  void clear() override { context_.clear_states(); }

 private:
  std::shared_ptr<const void> owner_;
  Context context_;
  bool compiled_, open_, placed_;  // open_: seq is a symbol; placed_: past is one
  std::vector<std::int64_t> ids_;
  std::vector<float> logits_;
};

// A language model that is a program.
class ProgramModel : public Model {
 public:
  virtual const Program& program() const = 0;                   // the compiled program
  virtual bool has_tokenizer() const = 0;                       // true if the checkpoint has a tokenizer
  virtual std::int64_t trained_length() const = 0;              // positions the model was trained for
  virtual std::size_t bytes_per_token() const = 0;              // bytes of the weights read per token
  virtual std::unique_ptr<ProgramDecoder> session() const = 0;  // decoder() with its context
  std::unique_ptr<Decoder> decoder() const override { return session(); }

 protected:
  ProgramModel() = default;
  ProgramModel(const ProgramModel&) = default;
  ProgramModel& operator=(const ProgramModel&) = default;
};

}  // namespace lc::llm
