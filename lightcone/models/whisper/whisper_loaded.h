// What a Whisper shares with those that run it.
#pragma once

#include <memory>

#include "lightcone/models/whisper/log_mel.h"
#include "lightcone/models/whisper/whisper.h"

namespace lc {

struct LoadedWhisper {
  std::shared_ptr<const Seq2SeqPrograms> programs;
  LogMelProgram log_mel;
  WhisperTokens tokens;
  std::shared_ptr<const Tokenizer> tokenizer;

  std::int64_t frames() const { return 2 * programs->shape().source; }  // the length of a window
};

}  // namespace lc
