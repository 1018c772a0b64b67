// Transcriber: one sound, window by window, as OpenAI's reference implementation goes through it.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/models/whisper/decoding.h"
#include "lightcone/models/whisper/whisper_loaded.h"

namespace lc {

class Transcriber {
 public:
  // Throws Error for options that are out of range or that the model does not know.
  Transcriber(const LoadedWhisper& model, TranscribeOptions o);
  Transcript transcribe(std::span<const float> samples);
  // As Whisper::languages().
  std::vector<std::pair<std::string, double>> languages(const LogMel& mel);

 private:
  // A decoded window with its text and what that is worth.
  struct Heard {
    WindowResult result;
    std::string text;
    double compression_ratio = 0;
  };
  void check() const;
  std::vector<int> begin_tokens(const std::string& language) const;
  Heard hear(const WindowOptions& window);
  bool failed(const Heard& h) const;
  bool silent(const Heard& h) const;
  // The segments of the window at `seek`, of `size` frames; moves `seek` to the next one.
  std::vector<TranscriptSegment> segments(const Heard& h, std::int64_t size, std::int64_t& seek) const;
  TranscriptSegment segment(const Heard& h, std::span<const int> tokens, double start, double end) const;
  std::string text_of(std::span<const int> tokens) const;
  double compression(std::string_view text) const;

  const LoadedWhisper& model_;
  const WhisperTokens& tokens_;
  TranscribeOptions o_;
  CachedDecoder decoder_;
  std::mt19937_64 random_;
};

}  // namespace lc
