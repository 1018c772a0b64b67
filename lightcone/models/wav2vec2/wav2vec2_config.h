// The hyperparameters of encoders of speech, as transformers' config.json has them.
#pragma once

#include "lightcone/macros_off.h"

#include <string>
#include <vector>

#include "lightcone/models/blocks/transformer_block.h"
#include "lightcone/models/files/config_file.h"

namespace lc {

enum class SpeechHead : std::uint8_t { None, Ctc, Sequence, Frames };

struct SpeechConfig {
  struct Conv {
    std::int64_t width = 0, kernel = 0, stride = 0;
  };
  std::vector<Conv> features = {};  // the convolutions that make frames of samples
  bool feature_bias = false;
  bool norm_each = false;  // a layer norm after each of them; otherwise the first has a group norm
  bool projection_norm = true;
  std::string feature_activation = "gelu";
  std::int64_t position_kernel = 128, position_groups = 16;
  TransformerBlockOptions block = {};
  std::int64_t layers = 12, adapter = 0;  // adapter: width of a small network after each layer (MMS); 0: none
  SpeechHead head = SpeechHead::None;
  std::int64_t vocab = 32, projector = 256;
  std::vector<std::string> labels = {};
  std::string architecture = {};

  std::int64_t least_samples() const;  // a frame needs so many
};

// Throws Error for sizes that do not fit together, and for an architecture that is not known.
SpeechConfig read_speech(const ConfigFile& file, const Weights& w);

}  // namespace lc
#include "lightcone/macros_on.h"
