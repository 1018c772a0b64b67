// Encoder-decoders as a module and as a loaded model.
//
// Inputs: "input_ids" and "attention_mask" (1 for a token, 0 for padding), i64 [batch, length]; and
// "decoder_input_ids", i64 [batch, target]. Of Whisper, "input_features" f32 [batch, mels, frames], log-mel
// spectrograms of so many frames as the model takes, stands in place of the first two. Outputs: "logits" [batch,
// target, vocab]; "encoder_hidden" [batch, length, width]; "decoder_hidden" [batch, target, width]. A T5EncoderModel
// has the encoder's alone, and the bare models have no logits. Symbols: "batch", "length" and "target".
#pragma once

#include <functional>
#include <vector>

#include "lightcone/models/files/loaded_model.h"
#include "lightcone/models/seq2seq/seq2seq_layer.h"
#include "lightcone/nn/conv.h"

namespace lc {

// An encoder-decoder as a module, whole or one of its two parts.
class Seq2SeqModel {
 public:
  explicit Seq2SeqModel(Seq2SeqConfig c, Seq2SeqPart part = Seq2SeqPart::Whole);
  void visit(nn::Visitor& v);

  // Ids i64 [batch, length] with their mask, or a spectrogram f32 [batch, mels, frames] without one, -> the hidden
  // states of the encoder [batch, length, width].
  Tensor encode(const Tensor& source, const Tensor& mask = {}) const;
  // What each of the decoder's layers attends to of the encoder's hidden states.
  std::vector<KeysValues> cross(const Tensor& encoder_hidden) const;

  // What a decoder knows beside its ids.
  struct Known {
    std::vector<KeysValues> cross;
    Tensor source_mask = {};  // i64 [batch, length]; undefined: there is no padding
    Dim past = 0;             // so many positions were decoded before
    // Adds the keys and values of a layer to those of the positions before. Unset if there are none.
    std::function<KeysValues(int layer, const KeysValues& now)> remember = {};
    std::vector<Tensor>* cross_weights = nullptr;  // receives the cross-attention weights of each layer
  };
  // Ids i64 [batch, n] -> the hidden states of the decoder [batch, n, width].
  Tensor decode(const Tensor& ids, const Known& known) const;
  Tensor logits(const Tensor& decoder_hidden) const;  // [..., width] -> [..., vocab]
  const Seq2SeqConfig& config() const { return c_; }

 private:
  struct Stack {
    Stack(const Seq2SeqConfig& c, const Seq2SeqStack& s, Seq2SeqPart part, bool decoder);
    nn::Embedding<> positions;
    std::vector<Seq2SeqLayer> layers;
    Seq2SeqNorm embedding_norm, norm;
  };
  Tensor embed(const Tensor& ids, const nn::Embedding<>& table, const Seq2SeqStack& s, const Stack& stack,
               const Dim& past) const;
  Tensor positions(const Tensor& ids, const Dim& n, const Seq2SeqStack& s, const Stack& stack, const Dim& past) const;
  Tensor listen(const Tensor& spectrogram) const;
  Tensor encoder_mask(const Tensor& mask, const Seq2SeqLayer& layer, const Dim& length) const;
  Tensor decoder_mask(const Dim& n, const Dim& past, const Seq2SeqLayer& layer) const;
  const nn::Embedding<>& target_table() const { return c_.own_target_table ? target_tokens_ : tokens_; }

  Seq2SeqConfig c_;
  Seq2SeqPart part_;
  nn::Embedding<> tokens_, target_tokens_;
  nn::Conv1d<> conv1_, conv2_;
  Stack encoder_, decoder_;
  nn::Linear<> head_;
  Tensor logits_bias_;
};

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_seq2seq(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
