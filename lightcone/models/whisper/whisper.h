// Whisper: speech to text (A. Radford et al., "Robust speech recognition via large-scale weak supervision", 2022).
//
//   const Whisper model = Whisper::load("whisper-tiny.en");
//   for (const TranscriptSegment& s : model.transcribe(sound_for_whisper(read_audio("talk.wav"))).segments)
//     std::cout << s.start << " " << s.end << s.text << '\n';
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/io/audio/audio.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/seq2seq/cached_decoder.h"
#include "lightcone/models/whisper/whisper_tokens.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc {

// Options of Whisper::load().
struct WhisperOptions {
  std::int64_t beams = 5;                 // sequences that are decoded at once: beams, or samples; 1: greedy
  std::optional<Compiler> compiler = {};  // unset: default_compiler({threads, precision})
  int threads = 0;                        // threads of the default compiler; 0: all cores this process may use
  Precision precision = Precision::Highest;
  bool words = false;                    // the model can tell the times of words: TranscribeOptions::words
  std::vector<std::string> ignore = {};  // keys of config.json, see LoadModelOptions
  std::string tokenizer = {};            // a tokenizer file; "": the one beside the model
};

// A word with the time in which it is said, in seconds.
struct TranscriptWord {
  double start = 0, end = 0;
  std::string text;        // with the space before it
  double probability = 0;  // the mean over its tokens
};

// A piece of a transcript.
struct TranscriptSegment {
  double start = 0, end = 0;  // in seconds
  std::string text;           // usually begins with a space
  std::vector<int> tokens;    // with timestamps
  double temperature = 0, average_logprob = 0, compression_ratio = 0, no_speech = 0;
  std::vector<TranscriptWord> words = {};  // if TranscribeOptions::words asks for them
};

// Options of Whisper::transcribe(). The defaults are OpenAI's.
struct TranscribeOptions {
  std::string language = {};          // "en", "de", ...; "": the likeliest in the first 30 s
  bool translate = false;             // to English
  bool timestamps = true;             // false: a segment is a window of 30 s
  bool words = false;                 // times of words, if WhisperOptions::words was set
  std::string prompt = {};            // a text that came before, or how names are spelled
  bool condition_on_previous = true;  // the text of a window is the prompt of the next
  std::vector<double> temperatures = {0, 0.2, 0.4, 0.6, 0.8, 1};  // each is tried if the one before fails
  double most_compression = 2.4;  // a text that zlib makes shorter by more than this repeats itself: it fails
  double least_logprob = -1;      // a text whose tokens are less likely fails
  double no_speech = 0.6;         // a likelier silence, of a text that is unlikely, too, is no text
  double patience = 1;            // how long beams search: see WindowOptions
  std::optional<double> length_penalty = {};  // unset: candidates are compared by the mean of their tokens
  std::uint64_t seed = 0;                     // for samples
  // Called with each segment and with the finished part of the sound, 0 to 1; `segment` is null after a window without
  // speech. Returns false to stop.
  std::function<bool(const TranscriptSegment* segment, double part)> progress = {};
};

// What was said.
struct Transcript {
  std::string language;  // "en"
  std::vector<TranscriptSegment> segments;
  std::string text() const;  // the texts of all segments
};

struct LoadedWhisper;

// A compiled Whisper with its tokenizer. It is immutable: any number of threads may use it at once. Copies share it.
class Whisper {
 public:
  // Opens a folder with config.json, weights (safetensors or PyTorch's) and tokenizer.json, or a file of whisper.cpp
  // (ggml-small-q5_1.bin), which has all of it. Throws Error for the reasons of load_model(), and if there is no
  // tokenizer or not Whisper's.
  static Whisper load(const std::string& path, const WhisperOptions& o = {});
  static Whisper load(const Weights& w, const WhisperOptions& o = {});

  // Transcribes samples at 16 kHz, -1 to 1, of any length. Throws Error for a language that the model does not know, a
  // translation or language from a model that knows English alone, and options out of range.
  Transcript transcribe(std::span<const float> samples, const TranscribeOptions& o = {}) const;
  // The languages that may be spoken in the first 30 s with their probabilities, the likeliest first. Throws Error if
  // the model knows English alone.
  std::vector<std::pair<std::string, double>> languages(std::span<const float> samples) const;

  bool is_multilingual() const { return !tokens().languages.empty(); }
  const WhisperTokens& tokens() const;
  const Tokenizer& tokenizer() const;
  const Seq2SeqPrograms& programs() const;

 private:
  explicit Whisper(std::shared_ptr<const LoadedWhisper> loaded) : loaded_(std::move(loaded)) {}
  static Whisper load(const Weights& w, const std::shared_ptr<const Tokenizer>& own, const WhisperOptions& o);
  std::shared_ptr<const LoadedWhisper> loaded_;
};

// The mean of the channels at 16 kHz, f32 [samples].
std::vector<float> sound_for_whisper(const Audio& a, const std::optional<Compiler>& compiler = {});

}  // namespace lc
