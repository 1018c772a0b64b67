#include "lightcone/models/whisper/transcriber.h"

#include <algorithm>
#include <cmath>

#include "lightcone/io/compressed_size.h"
#include "lightcone/io/utf8.h"
#include "lightcone/models/whisper/word_times.h"

namespace lc {
namespace {

constexpr double kSecondsAStep = 0.02;  // from one timestamp to the next
constexpr std::int64_t kFramesAStep = 2;
constexpr double kForgetsAbove = 0.5;  // a text of a higher temperature is no prompt for the next window

constexpr std::string_view kSpaces = " \t\n\r\f\v";

double seconds(std::int64_t frames) { return static_cast<double>(frames) / kFramesASecond; }
bool blank(const std::string& text) { return text.find_first_not_of(kSpaces) == text.npos; }

}  // namespace

Transcriber::Transcriber(const LoadedWhisper& model, TranscribeOptions o)
    : model_(model), tokens_(model.tokens), o_(std::move(o)), decoder_(model.programs), random_(o_.seed) {
  check();
}

void Transcriber::check() const {
  const auto refuse = [](const auto&... what) { throw Error("transcribe", str_cat(what...)); };
  const bool english_alone = tokens_.languages.empty();
  if (english_alone && o_.translate) refuse("translate is set, and this model knows English alone");
  if (!o_.language.empty() && !(english_alone && o_.language == "en")) tokens_.language(o_.language);
  if (o_.translate && tokens_.translate < 0) refuse("this model has no token for translations");
  if (o_.temperatures.empty()) refuse("there is no temperature: {0} is greedy");
  for (const double t : o_.temperatures)
    if (!(t >= 0) || std::isinf(t)) refuse("a temperature is ", t, ", and not 0 or more");
  if (!(o_.patience > 0) || std::isinf(o_.patience)) refuse("patience is ", o_.patience, ", and not above 0");
  if (o_.timestamps && tokens_.first_timestamp >= model_.programs->config().vocab)
    refuse("this model has no tokens for times: TranscribeOptions::timestamps = false transcribes without them");
  if (!o_.timestamps && o_.words) refuse("times of words need timestamps");
  if (o_.words && model_.programs->shape().watched.empty())
    refuse("times of words need a model that was loaded with WhisperOptions::words");
  require_utf8(o_.prompt, "the prompt");
}

std::vector<int> Transcriber::begin_tokens(const std::string& language) const {
  std::vector<int> ids{tokens_.start};
  if (!tokens_.languages.empty()) {
    ids.push_back(tokens_.language(language));
    ids.push_back(o_.translate ? tokens_.translate : tokens_.transcribe);
  }
  if (!o_.timestamps) ids.push_back(tokens_.no_timestamps);
  return ids;
}

std::vector<std::pair<std::string, double>> Transcriber::languages(const LogMel& mel) {
  if (tokens_.languages.empty()) throw Error("languages", "this model knows English alone");
  decoder_.encode(mel.window(0, model_.frames(), model_.frames()));
  const std::span<const float> logits =
      decoder_.step(std::vector<std::int64_t>(static_cast<std::size_t>(model_.programs->shape().rows), tokens_.start));
  std::vector<float> of_languages;
  for (const auto& [code, id] : tokens_.languages) of_languages.push_back(logits[static_cast<std::size_t>(id)]);
  const double all = log_sum_exp(of_languages);
  std::vector<std::pair<std::string, double>> found;
  for (std::size_t k = 0; k < of_languages.size(); ++k)
    found.emplace_back(tokens_.languages[k].first, std::exp(static_cast<double>(of_languages[k]) - all));
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.second > b.second; });
  return found;
}

std::string Transcriber::text_of(std::span<const int> tokens) const {
  std::vector<int> words;
  std::ranges::copy_if(tokens, std::back_inserter(words), [&](int id) { return tokens_.is_text(id); });
  return model_.tokenizer->decode(words);
}

// How many times shorter zlib makes a text without the spaces around it.
double Transcriber::compression(std::string_view text) const {
  const std::size_t first = text.find_first_not_of(kSpaces), last = text.find_last_not_of(kSpaces);
  text = first == text.npos ? "" : text.substr(first, last - first + 1);
  return static_cast<double>(text.size()) / static_cast<double>(io::compressed_size(text));
}

bool Transcriber::silent(const Heard& h) const {
  return h.result.no_speech > o_.no_speech && !(h.result.average_logprob > o_.least_logprob);
}
bool Transcriber::failed(const Heard& h) const {
  if (h.result.no_speech > o_.no_speech && h.result.average_logprob < o_.least_logprob) return false;  // it is silence
  return h.compression_ratio > o_.most_compression || h.result.average_logprob < o_.least_logprob;
}

// Tries one temperature after the other, until a text neither repeats itself nor is unlikely.
Transcriber::Heard Transcriber::hear(const WindowOptions& window) {
  Heard h;
  for (const double temperature : o_.temperatures) {
    WindowOptions w = window;
    w.temperature = temperature;
    h.result = decode_window(decoder_, tokens_, w, random_);
    h.text = text_of(h.result.tokens);
    h.compression_ratio = compression(h.text);
    if (!failed(h)) break;
  }
  return h;
}

TranscriptSegment Transcriber::segment(const Heard& h, std::span<const int> tokens, double start, double end) const {
  TranscriptSegment s{.start = start,
                      .end = end,
                      .text = text_of(tokens),
                      .tokens = {tokens.begin(), tokens.end()},
                      .temperature = h.result.temperature,
                      .average_logprob = h.result.average_logprob,
                      .compression_ratio = h.compression_ratio,
                      .no_speech = h.result.no_speech};
  if (start == end || blank(s.text)) s.text.clear(), s.tokens.clear();
  return s;
}

// Two timestamps in a row end one segment and begin the next. The window after this one begins where the last whole
// segment ends, unless a single timestamp says that nothing follows it.
std::vector<TranscriptSegment> Transcriber::segments(const Heard& h, std::int64_t size, std::int64_t& seek) const {
  const std::vector<int>& ids = h.result.tokens;
  const double begin = seconds(seek);
  const auto is_time = [&](std::size_t k) { return tokens_.is_timestamp(ids[k]); };
  const auto step = [&](std::size_t k) { return ids[k] - tokens_.first_timestamp; };
  const std::size_t n = ids.size();
  const bool ends_alone = n >= 2 && is_time(n - 1) && !is_time(n - 2);
  std::vector<std::size_t> cuts;
  for (std::size_t k = 1; k < n; ++k)
    if (is_time(k - 1) && is_time(k)) cuts.push_back(k);
  std::vector<TranscriptSegment> all;
  if (cuts.empty()) {
    double end = begin + seconds(size);
    for (std::size_t k = n; k-- > 0;)
      if (is_time(k)) {
        if (step(k) > 0) end = begin + step(k) * kSecondsAStep;
        break;
      }
    all.push_back(segment(h, ids, begin, end));
    seek += size;
    return all;
  }
  if (ends_alone) cuts.push_back(n);
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    all.push_back(segment(h, std::span(ids).subspan(from, cut - from), begin + step(from) * kSecondsAStep,
                          begin + step(cut - 1) * kSecondsAStep));
    from = cut;
  }
  const std::int64_t last = step(from - 1) * kFramesAStep;
  seek += ends_alone || last <= 0 ? size : last;
  return all;
}

Transcript Transcriber::transcribe(std::span<const float> samples) {
  const LogMel mel = model_.log_mel(samples);
  Transcript out;
  out.language = tokens_.languages.empty() ? "en" : o_.language;
  if (mel.frames() == 0) return out;
  if (out.language.empty()) out.language = languages(mel).front().first;
  WindowOptions window{.begin = begin_tokens(out.language),
                       .timestamps = o_.timestamps,
                       .patience = o_.patience,
                       .length_penalty = o_.length_penalty};
  std::vector<int> said;
  if (!blank(o_.prompt)) {
    const std::size_t first = o_.prompt.find_first_not_of(kSpaces), last = o_.prompt.find_last_not_of(kSpaces);
    said = model_.tokenizer->encode(" " + o_.prompt.substr(first, last - first + 1), false);
  }
  double last_end = 0;        // the end of the last word
  std::size_t forgotten = 0;  // so many tokens of `said` are no prompt
  const auto most_prompt = static_cast<std::size_t>(model_.programs->shape().context / 2 - 1);
  for (std::int64_t seek = 0; seek < mel.frames();) {
    const std::int64_t size = std::min(model_.frames(), mel.frames() - seek);
    decoder_.encode(mel.window(seek, size, model_.frames()));
    window.prompt.clear();
    if (said.size() > forgotten && tokens_.previous >= 0) {
      window.prompt.push_back(tokens_.previous);
      window.prompt.insert(window.prompt.end(),
                           said.end() - static_cast<std::ptrdiff_t>(std::min(said.size() - forgotten, most_prompt)),
                           said.end());
    }
    const Heard h = hear(window);
    const double begin = seconds(seek);
    std::vector<TranscriptSegment> found;
    if (silent(h)) seek += size;
    else found = segments(h, size, seek);
    const double part = static_cast<double>(seek) / static_cast<double>(mel.frames());
    std::erase_if(found, [](const TranscriptSegment& s) { return s.text.empty(); });
    if (o_.words && !found.empty())
      add_words(found, decoder_, model_, begin_tokens(out.language), out.language, begin, size, last_end);
    bool goes_on = !found.empty() || !o_.progress || o_.progress(nullptr, part);
    for (TranscriptSegment& s : found) {
      said.insert(said.end(), s.tokens.begin(), s.tokens.end());
      if (goes_on && o_.progress) goes_on = o_.progress(&s, part);
      out.segments.push_back(std::move(s));
    }
    if (!goes_on) break;
    if (!o_.condition_on_previous || h.result.temperature > kForgetsAbove) forgotten = said.size();
  }
  return out;
}

}  // namespace lc
