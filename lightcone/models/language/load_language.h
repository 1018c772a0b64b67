// Decoder-only language models as load_model() makes them: graphs of whole texts, without a cache.
//
// Inputs, both i64 [batch, length]: "input_ids", and "attention_mask", 1 for a token and 0 for padding, on either side
// of the text. A row of padding attends to itself and computes numbers without a meaning.
// Outputs: "hidden" [batch, length, width], what the head reads; "logits", of a language model [batch, length, vocab],
// of a classifier of texts [batch, labels] from the last token that is not padding, for each token
// [batch, length, labels], for answers [batch, length, 2] (begin and end).
// Symbols: "batch" and "length".
//
// LanguageModel (language_model.h) continues texts with a cache.
#pragma once

#include "lightcone/models/files/loaded_model.h"
#include "lightcone/models/language/config/language_config.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_language(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

// A checkpoint as far as it is known before a graph exists.
struct LanguageFile {
  LanguageConfig config;
  WeightTable weights;
};
// Reads config.json and the names of the weights. Throws Error for the reasons of load_model().
LanguageFile open_language(const Weights& w, const ConfigFile& config);
// Takes the tensors that a LanguageNet reads as whole numbers.
void take_blocks(const LanguageConfig& c, const WeightTable& w);

}  // namespace lc
