// Decoder: a language model that continues one sequence of tokens, whatever its architecture. Chat, generate() and
// programs need nothing else of a model while it runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lc::llm {

// The sizes of a Decoder.
struct DecoderSizes {
  std::int64_t vocabulary = 0;  // number of token ids
  std::int64_t context = 0;     // maximum length of the sequence
  std::int64_t step = 0;        // maximum number of tokens per step(); 0: as many as the context holds
  bool all_logits = false;      // step() returns the logits of all its tokens, not only of the last
};

// The tokens of one sequence and the state of the model that ran them (a KV cache). An architecture derives from it and
// implements step() and clear(). A decoder is for one thread at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Appends tokens and returns logits, valid until the next call: [vocabulary] of the last token or, with all_logits,
  // [tokens.size(), vocabulary]. Throws Error if the context is full, if a token is outside the vocabulary, and for the
  // reasons of step(). After an Error the tokens count as never fed.
  std::span<const float> feed(std::span<const int> tokens);
  // Appends one token.
  std::span<const float> feed(int token) { return feed({&token, 1}); }
  std::span<const int> tokens() const { return tokens_; }  // the tokens in the cache
  std::int64_t room() const;                               // free positions of the context
  // Drops all but the first `tokens` tokens; the cache keeps their positions. Throws Error if there are fewer tokens.
  void truncate(std::size_t tokens);
  // Drops all tokens and clears the cache.
  void reset();

  std::int64_t vocabulary_size() const { return sizes_.vocabulary; }  // number of token ids
  std::int64_t context_length() const { return sizes_.context; }      // maximum length of the sequence

 protected:
  // Throws Error if the vocabulary or the context is empty. Feeding one token allocates nothing afterwards.
  explicit Decoder(const DecoderSizes& sizes);
  Decoder(Decoder&&) = default;
  Decoder& operator=(Decoder&&) = default;

  // Runs 1 to sizes.step tokens at the positions past, past + 1, ... and returns logits as feed() does, valid until the
  // next call. The tokens at the positions before `past` were run by earlier steps. Positions from `past` on may hold
  // other tokens, which truncate() or an Error left there: they must not be read before they are overwritten.
  virtual std::span<const float> step(std::span<const int> tokens, std::int64_t past) = 0;
  // Clears the state of the model: the next step begins at position 0.
  virtual void clear() = 0;

 private:
  DecoderSizes sizes_;
  std::vector<int> tokens_;
  std::vector<float> logits_;
};

}  // namespace lc::llm
