// An encoder-decoder as two compiled programs: one encodes a source, once, into the keys and values that the decoder
// attends to; the other decodes step by step, with the keys and values of the positions so far in states.
//
// The encoder's inputs: "input_ids" i64 [1, length], or of Whisper "input_features" f32 [1, mels, frames]. Outputs:
// "cross.I.keys" and "cross.I.values" [1, heads, length, head] of each layer I of the decoder.
// The decoder's inputs: the same; and "ids" i64 [rows, seq]. States: "self.I.keys" and "self.I.values" [rows, heads,
// context, head]. Output: "logits" [rows, vocab] of the last position.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lightcone/models/seq2seq/seq2seq_config.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/runtime/program.h"

namespace lc {

// The sizes of the programs that the model does not determine.
struct Seq2SeqShape {
  std::int64_t rows = 1;     // sequences that are decoded at once, for one source
  std::int64_t source = 0;   // longest source in positions
  std::int64_t context = 0;  // positions of the cache
  // Layers and heads of the decoder whose attention to the source watch() tells; a third program is compiled for it.
  std::vector<std::pair<int, int>> watched = {};
};

// The compiled programs of one model. Any number of CachedDecoders may share them.
class Seq2SeqPrograms {
 public:
  // Throws Error for the reasons of load_model().
  Seq2SeqPrograms(const Weights& w, const Seq2SeqConfig& c, const Seq2SeqShape& shape, const Compiler& compiler);

  const Seq2SeqConfig& config() const { return config_; }
  const Seq2SeqShape& shape() const { return shape_; }
  const Program& encoder() const { return encoder_; }
  const Program& decoder() const { return decoder_; }
  const Program& watcher() const { return watcher_; }  // without a graph if no head is watched

 private:
  Seq2SeqConfig config_;
  Seq2SeqShape shape_;
  Program encoder_, decoder_, watcher_;
};

// One source and the sequences that are decoded from it. For one thread at a time.
class CachedDecoder {
 public:
  explicit CachedDecoder(std::shared_ptr<const Seq2SeqPrograms> programs);

  // Encodes a source, and forgets what was decoded. Throws Error if it is empty, longer than the shape's source, or has
  // an id outside of the vocabulary.
  void encode(std::span<const std::int64_t> ids);
  // The same for a spectrogram [mels, frames] of Whisper. Throws Error for another number of elements.
  void encode(std::span<const float> spectrogram);
  // Forgets what was decoded from this source.
  void begin() { past_ = 0; }
  // Keeps the first `positions` positions.
  void truncate(std::int64_t positions);

  // Appends n ids to each row, [rows, n], and returns the logits of the last, [rows, vocab], valid until the next call.
  // Row r continues the row parents[r] of the steps before; without parents its own. Throws Error if the ids are not
  // whole rows or do not fit the context, or if an id or a parent is out of range.
  std::span<const float> step(std::span<const std::int64_t> ids, std::span<const std::int64_t> parents = {});
  std::int64_t past() const { return past_; }  // positions decoded so far

  // Where the watched heads look while the model reads a text that is known already.
  struct Watched {
    std::vector<float> weights;        // [heads, n, length]: of the source's positions, their sum is 1
    std::vector<float> probabilities;  // [n]: of each id, behind those before it; the first has none and is 0
  };
  // Reads n ids behind the source; what was decoded stays. The probabilities are those among the first `below` ids of
  // the vocabulary, and 0 for others. Throws Error for the reasons of step(), and if no head is watched.
  Watched watch(std::span<const std::int64_t> ids, std::int64_t below);

  const Seq2SeqPrograms& programs() const { return *programs_; }

 private:
  void check_ids(std::span<const std::int64_t> ids) const;
  void take_cross(std::int64_t length);
  void reorder();
  std::span<const float> results();

  std::shared_ptr<const Seq2SeqPrograms> programs_;
  Context encoder_, decoder_;
  std::vector<std::int64_t> parents_;
  // The states, if there are several rows: rows change places in them between steps, which costs less than a step that
  // writes all of them anew.
  std::vector<std::vector<float>> states_;
  std::vector<float> moved_;  // rows on their way
  std::vector<float> logits_;
  std::int64_t past_ = 0, length_ = 0;
  bool encoded_ = false;
};

}  // namespace lc
