// Transcripts as files of subtitles.
#pragma once

#include <string>

#include "lightcone/models/whisper/whisper.h"

namespace lc {

// One segment as SubRip has it, with its number from 1 on: "1\n00:00:00,000 --> 00:00:07,500\nText\n\n".
std::string srt_of(const TranscriptSegment& s, std::size_t number);
// One segment as WebVTT has it; a file begins with "WEBVTT\n\n".
std::string vtt_of(const TranscriptSegment& s);
// The text without the space that it begins with.
std::string trimmed_text(const TranscriptSegment& s);

}  // namespace lc
