// lightcone transcribe: the text of a sound.
#include <cmath>

#include <nlohmann/json.hpp>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/audio/audio.h"
#include "lightcone/models/whisper/subtitles.h"
#include "lightcone/models/whisper/whisper.h"
#include "speak.h"

namespace lc::tool {
namespace {

using nlohmann::ordered_json;

double rounded(double x) { return std::round(x * 1000) / 1000; }

// With the keys of OpenAI's command.
ordered_json json_of(const TranscriptSegment& s, std::size_t number) {
  ordered_json j{{"id", number},
                 {"start", rounded(s.start)},
                 {"end", rounded(s.end)},
                 {"text", s.text},
                 {"tokens", s.tokens},
                 {"temperature", s.temperature},
                 {"avg_logprob", s.average_logprob},
                 {"compression_ratio", s.compression_ratio},
                 {"no_speech_prob", s.no_speech}};
  for (const TranscriptWord& w : s.words)
    j["words"].push_back(
        {{"word", w.text}, {"start", rounded(w.start)}, {"end", rounded(w.end)}, {"probability", w.probability}});
  return j;
}

std::string json_of(const Transcript& t) {
  ordered_json j{{"text", t.text()}, {"language", t.language}, {"segments", ordered_json::array()}};
  for (std::size_t k = 0; k < t.segments.size(); ++k) j["segments"].push_back(json_of(t.segments[k], k));
  return j.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// Writes a transcript to the standard output, segment by segment where the format allows it.
class Writer {
 public:
  explicit Writer(const std::string& format) : format_(format) {
    if (format == "vtt") write_stdout("WEBVTT\n\n");
  }
  void add(const TranscriptSegment& s) {
    ++count_;
    if (format_ == "srt") write_stdout(srt_of(s, count_));
    else if (format_ == "vtt") write_stdout(vtt_of(s));
    else if (format_ == "text") write_stdout(trimmed_text(s) + "\n");
  }
  void finish(const Transcript& t) const {
    if (format_ == "json") write_stdout(json_of(t));
  }

 private:
  std::string format_;
  std::size_t count_ = 0;
};

void print_languages(const Whisper& model, std::span<const float> samples) {
  std::string lines;
  for (const auto& [code, probability] : model.languages(samples))
    if (probability >= 0.001) lines += formatted("%-4s %.3f\n", code.c_str(), probability);
  write_stdout(lines);
}

}  // namespace

int transcribe(const TranscribeCommand& o) {
  const Compiler compiler = compiler_for(open_device(o.device), {.threads = o.threads, .precision = o.precision});
  const Audio sound = read_audio(o.sound);
  const Whisper model = Whisper::load(
      o.model,
      {.beams = o.beams, .compiler = compiler, .words = o.words, .ignore = o.ignore, .tokenizer = o.tokenizer});
  print_notes(model.programs().decoder());
  const std::vector<float> samples = sound_for_whisper(sound, compiler);
  if (o.detect) return print_languages(model, samples), 0;
  Writer writer(o.format);
  Progress progress;
  catch_signals();
  TranscribeOptions t{.language = o.language,
                      .translate = o.translate,
                      .words = o.words,
                      .prompt = o.prompt,
                      .condition_on_previous = o.context,
                      .seed = o.seed};
  const double seconds = static_cast<double>(samples.size()) / 16000;
  t.progress = [&](const TranscriptSegment* s, double part) {
    progress.clear();
    if (s) writer.add(*s);
    progress.show("listening", part, formatted("%.0f of %.0f s", part * seconds, seconds));
    return caught_signal() == 0;
  };
  progress.show("listening", 0, formatted("0 of %.0f s", seconds));
  const Transcript text = model.transcribe(samples, t);
  progress.clear();
  writer.finish(text);
  if (text.segments.empty() && caught_signal() == 0) note("no speech was found");
  const int signal = caught_signal();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace lc::tool
