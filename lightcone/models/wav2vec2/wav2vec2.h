// Encoders of speech of wav2vec 2.0's family: wav2vec 2.0, XLSR, MMS and HuBERT.
//
// Inputs: "input_values" f32 [batch, samples], sound at the rate of the model (16 kHz), of mean 0 and variance 1 if its
// preprocessor_config.json says so (do_normalize); "attention_mask" i64 [batch, samples], 1 for sound and 0 for what
// fills up at the end. Outputs: "hidden" [batch, frames, width], a frame for each 320 samples of most models; and
// "logits", of ForCTC [batch, frames, vocab] (the id of padding is the blank), of ForSequenceClassification
// [batch, labels], of ForAudioFrameClassification [batch, frames, labels]. A checkpoint for pretraining gives "hidden".
// Symbols: "batch" and "samples", at most a minute.
//
// A. Baevski et al., "wav2vec 2.0", 2020; W.-N. Hsu et al., "HuBERT", 2021.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_wav2vec2(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
