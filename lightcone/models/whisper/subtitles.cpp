#include "lightcone/models/whisper/subtitles.h"

#include <algorithm>
#include <cmath>

#include "lightcone/base/numbers.h"

namespace lc {
namespace {

std::string time_of(double seconds, char point) {
  const auto all = static_cast<long long>(std::llround(std::max(seconds, 0.0) * 1000));
  return formatted("%02lld:%02lld:%02lld%c%03lld", all / 3600000, all / 60000 % 60, all / 1000 % 60, point, all % 1000);
}

// Two lines "-->" or an empty line would end a subtitle before its time.
std::string cue_text(const TranscriptSegment& s) {
  std::string text = trimmed_text(s);
  for (std::size_t at; (at = text.find("-->")) != text.npos;) text.replace(at, 3, "->");
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

std::string trimmed_text(const TranscriptSegment& s) {
  const std::size_t first = s.text.find_first_not_of(" \t\n\r"), last = s.text.find_last_not_of(" \t\n\r");
  return first == s.text.npos ? "" : s.text.substr(first, last - first + 1);
}

std::string srt_of(const TranscriptSegment& s, std::size_t number) {
  return str_cat(number, "\n", time_of(s.start, ','), " --> ", time_of(s.end, ','), "\n", cue_text(s), "\n\n");
}

std::string vtt_of(const TranscriptSegment& s) {
  return str_cat(time_of(s.start, '.'), " --> ", time_of(s.end, '.'), "\n", cue_text(s), "\n\n");
}

}  // namespace lc
