// The log-mel spectrogram of a sound of any length, and the windows of it that Whisper listens to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lightcone/passes/compiler.h"
#include "lightcone/runtime/program.h"

namespace lc {

constexpr std::int64_t kWhisperRate = 16000;  // samples a second
constexpr std::int64_t kFramesASecond = 100;
constexpr std::int64_t kSamplesAFrame = kWhisperRate / kFramesASecond;

// A spectrogram: log10 of the power in each band.
class LogMel {
 public:
  std::int64_t frames() const { return frames_; }  // without what stands behind the sound
  // The frames first, first + 1, ... as the model takes them, [mels, length]: at most 8 below the loudest of the whole
  // sound, mapped by (v + 4) / 4. Frames from `first + count` on are 0, as OpenAI's Whisper fills up a window.
  std::vector<float> window(std::int64_t first, std::int64_t count, std::int64_t length) const;

 private:
  friend class LogMelProgram;
  std::int64_t mels_ = 0, frames_ = 0, chunk_ = 0;
  float loudest_ = 0;
  std::vector<float> levels_;  // [chunks, mels, chunk]
};

// Computes spectrograms chunk by chunk, in one program. It may be used by several threads at once.
class LogMelProgram {
 public:
  LogMelProgram() = default;
  // `length`: frames of a chunk.
  LogMelProgram(std::int64_t mels, std::int64_t length, const Compiler& compiler);
  // The spectrogram of samples at 16 kHz, -1 to 1, as if 30 s of silence followed.
  LogMel operator()(std::span<const float> samples) const;

 private:
  std::int64_t mels_ = 0, length_ = 0;
  Program program_;
};

}  // namespace lc
