#include "lightcone/models/whisper/word_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lightcone/io/utf8.h"
#include "lightcone/models/whisper/whisper_loaded.h"

namespace lc {
namespace {

constexpr double kSecondsAPosition = 0.02;  // from one position of the encoder to the next
constexpr std::int64_t kFilter = 7;         // positions of the median
constexpr double kLongestMedian = 0.7;      // seconds of a word, where half of them are longer
constexpr double kApart = 0.5;              // so much may a word reach beyond its segment

struct Word {
  std::string text;
  std::size_t tokens = 0;
  double start = 0, end = 0, probability = 0;
};

// Each position becomes the median of its neighbours; the row is mirrored at its ends.
void filter_medians(std::span<double> row) {
  const std::int64_t n = std::ssize(row), reach = kFilter / 2;
  if (n <= reach) return;
  const std::vector<double> before(row.begin(), row.end());
  for (std::int64_t k = 0; k < n; ++k) {
    std::array<double, kFilter> near{};
    for (std::int64_t d = -reach; d <= reach; ++d) {
      std::int64_t at = std::abs(k + d);
      if (at >= n) at = 2 * (n - 1) - at;
      near[static_cast<std::size_t>(d + reach)] = before[static_cast<std::size_t>(at)];
    }
    std::ranges::nth_element(near, near.begin() + reach);
    row[static_cast<std::size_t>(k)] = near[static_cast<std::size_t>(reach)];
  }
}

// How strongly each token attends to each position, the mean over the heads: what stands out of the mean of all tokens,
// without single positions. [tokens, positions]
std::vector<double> attention_of(const CachedDecoder::Watched& w, std::size_t heads, std::size_t tokens,
                                 std::size_t length, std::size_t positions) {
  std::vector<double> all(tokens * positions);
  for (std::size_t h = 0; h < heads; ++h) {
    std::vector<double> x(tokens * positions);
    for (std::size_t t = 0; t < tokens; ++t) {
      const float* row = &w.weights[(h * tokens + t) * length];
      double sum = 0;
      for (std::size_t p = 0; p < positions; ++p) sum += static_cast<double>(row[p]);
      for (std::size_t p = 0; p < positions; ++p) x[t * positions + p] = static_cast<double>(row[p]) / sum;
    }
    for (std::size_t p = 0; p < positions; ++p) {
      double mean = 0, square = 0;
      for (std::size_t t = 0; t < tokens; ++t) mean += x[t * positions + p] / static_cast<double>(tokens);
      for (std::size_t t = 0; t < tokens; ++t) square += std::pow(x[t * positions + p] - mean, 2);
      const double deviation = std::sqrt(square / static_cast<double>(tokens));
      for (std::size_t t = 0; t < tokens; ++t)
        x[t * positions + p] = deviation > 0 ? (x[t * positions + p] - mean) / deviation : 0;
    }
    for (std::size_t t = 0; t < tokens; ++t) filter_medians(std::span(x).subspan(t * positions, positions));
    for (std::size_t k = 0; k < x.size(); ++k) all[k] += x[k] / static_cast<double>(heads);
  }
  return all;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> marks) {
  return std::ranges::find(marks, text) != marks.end();
}
bool is_whole_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = utf8_length(text, at);
    if (n == 0) return false;
    at += n;
  }
  return true;
}
bool ends_sentence(std::string_view text) { return is_one_of(text, {".", "。", "!", "！", "?", "？"}); }

// Opening marks belong to the word behind them, closing ones to the word before.
void join_marks(std::vector<Word>& words) {
  if (words.empty()) return;
  const auto text_of = [](const Word& w) { return std::string_view(w.text).substr(w.text.starts_with(' ') ? 1 : 0); };
  std::size_t next = words.size() - 1;
  for (std::size_t k = next; k-- > 0;) {
    Word& mark = words[k];
    if (mark.text.starts_with(' ') && is_one_of(text_of(mark), {"\"", "'", "“", "¿", "(", "[", "{", "-"})) {
      words[next].text = mark.text + words[next].text, words[next].tokens += mark.tokens;
      mark.text.clear(), mark.tokens = 0;
    } else {
      next = k;
    }
  }
  std::size_t last = 0;
  for (std::size_t k = 1; k < words.size(); ++k) {
    Word& mark = words[k];
    const bool closes = is_one_of(
        mark.text, {"\"", "'", ".", "。", ",", "，", "!", "！", "?", "？", ":", "：", "”", ")", "]", "}", "、"});
    if (closes && !words[last].text.ends_with(' ')) {
      words[last].text += mark.text, words[last].tokens += mark.tokens;
      mark.text.clear(), mark.tokens = 0;
    } else {
      last = k;
    }
  }
}

double median_duration(const std::vector<Word>& words) {
  std::vector<double> durations;
  for (const Word& w : words)
    if (w.end > w.start) durations.push_back(w.end - w.start);
  if (durations.empty()) return 0;
  std::ranges::sort(durations);
  const std::size_t n = durations.size();
  return std::min(kLongestMedian, n % 2 == 1 ? durations[n / 2] : (durations[n / 2 - 1] + durations[n / 2]) / 2);
}

// A mark at the end of a sentence, and the word behind it, do not last as long as the pause between them.
void shorten(std::vector<Word>& words, double most) {
  for (std::size_t k = 1; most > 0 && k < words.size(); ++k) {
    if (words[k].end - words[k].start <= most) continue;
    if (ends_sentence(words[k].text)) words[k].end = words[k].start + most;
    else if (ends_sentence(words[k - 1].text)) words[k].start = words[k].end - most;
  }
}

// The words of a segment and its own times are brought together: a long word beside a pause is cut, where they differ
// much the segment's time counts, and otherwise the words'.
void fit(TranscriptSegment& s, double median, double& last_end) {
  std::vector<TranscriptWord>& w = s.words;
  if (w.empty()) return;
  const double most = 2 * median;
  if (w[0].end - last_end > 4 * median &&
      (w[0].end - w[0].start > most || (w.size() > 1 && w[1].end - w[0].start > 2 * most))) {
    if (w.size() > 1 && w[1].end - w[1].start > most) w[0].end = w[1].start = std::max(w[1].end / 2, w[1].end - most);
    w[0].start = std::max(0.0, w[0].end - most);
  }
  if (s.start < w[0].end && s.start - kApart > w[0].start)
    w[0].start = std::max(0.0, std::min(w[0].end - median, s.start));
  else s.start = w[0].start;
  if (s.end > w.back().start && s.end + kApart < w.back().end) w.back().end = std::max(w.back().start + median, s.end);
  else s.end = w.back().end;
  last_end = s.end;
}

}  // namespace

std::vector<std::int64_t> first_columns(std::span<const double> cost, std::int64_t rows, std::int64_t columns) {
  const std::int64_t wide = columns + 1;
  std::vector<double> sum(static_cast<std::size_t>((rows + 1) * wide), std::numeric_limits<double>::infinity());
  enum Step : char { Both, Down, Right };
  std::vector<char> step(sum.size(), Right);
  const auto at = [wide](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * wide + j); };
  sum[0] = 0;
  for (std::int64_t i = 0; i <= rows; ++i) step[at(i, 0)] = Down;
  for (std::int64_t j = 0; j <= columns; ++j) step[at(0, j)] = Right;
  for (std::int64_t j = 1; j <= columns; ++j)
    for (std::int64_t i = 1; i <= rows; ++i) {
      const double both = sum[at(i - 1, j - 1)], down = sum[at(i - 1, j)], right = sum[at(i, j - 1)];
      const Step s = both < down && both < right ? Both : down < both && down < right ? Down : Right;
      const double before = s == Both ? both : s == Down ? down : right;
      sum[at(i, j)] = cost[static_cast<std::size_t>((i - 1) * columns + j - 1)] + before;
      step[at(i, j)] = s;
    }
  std::vector<std::int64_t> first(static_cast<std::size_t>(rows));
  for (std::int64_t i = rows, j = columns; i > 0 && j > 0;) {
    first[static_cast<std::size_t>(i - 1)] = j - 1;
    const char s = step[at(i, j)];
    if (s != Right) --i;
    if (s != Down) --j;
  }
  return first;
}

std::vector<SplitWord> split_words(const Tokenizer& tokenizer, std::span<const int> tokens,
                                   const std::string& language) {
  std::vector<SplitWord> parts, words;
  SplitWord open;
  for (const int id : tokens) {  // tokens may hold parts of characters
    open.text += tokenizer.piece(id), open.tokens.push_back(id);
    if (is_whole_utf8(open.text)) parts.push_back(std::move(open)), open = {};
  }
  if (!open.tokens.empty()) parts.push_back(std::move(open));
  if (is_one_of(language, {"zh", "ja", "th", "lo", "my", "yue"})) return parts;
  constexpr std::string_view kMarks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  for (SplitWord& p : parts) {
    const std::size_t first = p.text.find_first_not_of(' '), last = p.text.find_last_not_of(' ');
    const bool mark = first != p.text.npos && first == last && kMarks.find(p.text[first]) != kMarks.npos;
    if (words.empty() || p.text.starts_with(' ') || mark) words.push_back(std::move(p));
    else {
      words.back().text += p.text;
      words.back().tokens.insert(words.back().tokens.end(), p.tokens.begin(), p.tokens.end());
    }
  }
  return words;
}

void add_words(std::vector<TranscriptSegment>& segments, CachedDecoder& decoder, const LoadedWhisper& model,
               std::span<const int> begin_tokens, const std::string& language, double begin, std::int64_t frames,
               double& last_end) {
  const WhisperTokens& t = model.tokens;
  std::vector<int> text;
  std::vector<std::size_t> counts;
  for (const TranscriptSegment& s : segments) {
    const std::size_t before = text.size();
    std::ranges::copy_if(s.tokens, std::back_inserter(text), [&](int id) { return t.is_text(id); });
    counts.push_back(text.size() - before);
  }
  if (text.empty()) return;
  std::vector<std::int64_t> ids(begin_tokens.begin(), begin_tokens.end());
  const std::size_t before = ids.size();
  ids.push_back(t.no_timestamps);
  ids.insert(ids.end(), text.begin(), text.end());
  ids.push_back(t.end);
  if (std::ssize(ids) > decoder.programs().shape().context) return;  // a text without an end, which nobody said
  const CachedDecoder::Watched w = decoder.watch(ids, t.end);
  const auto length = static_cast<std::size_t>(decoder.programs().shape().source);
  const std::size_t positions = std::clamp<std::size_t>(static_cast<std::size_t>(frames / 2), 1, length);
  std::vector<double> cost = attention_of(w, model.tokens.alignment_heads.size(), ids.size(), length, positions);
  cost.erase(cost.begin(), cost.begin() + static_cast<std::ptrdiff_t>(before * positions));  // they predict no text
  cost.resize((text.size() + 1) * positions);
  for (double& x : cost) x = -x;
  const std::vector<std::int64_t> first =
      first_columns(cost, static_cast<std::int64_t>(text.size()) + 1, static_cast<std::int64_t>(positions));
  std::vector<Word> words;
  std::size_t at = 0;
  for (SplitWord& s : split_words(*model.tokenizer, text, language)) {
    const std::size_t n = s.tokens.size();
    double probability = 0;
    for (std::size_t k = at; k < at + n; ++k)
      probability += static_cast<double>(w.probabilities[before + 1 + k]) / static_cast<double>(n);
    words.push_back({std::move(s.text), n, static_cast<double>(first[at]) * kSecondsAPosition,
                     static_cast<double>(first[at + n]) * kSecondsAPosition, probability});
    at += n;
  }
  const double median = median_duration(words);
  shorten(words, 2 * median);
  join_marks(words);
  std::size_t next = 0;
  for (std::size_t k = 0; k < segments.size(); ++k) {
    for (std::size_t taken = 0; next < words.size() && taken < counts[k]; ++next) {
      const Word& word = words[next];
      taken += word.tokens;
      if (!word.text.empty())
        segments[k].words.push_back({begin + word.start, begin + word.end, word.text, word.probability});
    }
    fit(segments[k], median, last_end);
  }
}

}  // namespace lc
