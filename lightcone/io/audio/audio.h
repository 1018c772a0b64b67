// Reads and writes sound: WAV and FLAC files in, WAV files out.
//
// Files may be hostile: what a file states is checked against its bytes and against ReadOptions::memory before memory
// is allocated, and a file that is damaged, truncated or of another kind is an Error that names it. The decoder of FLAC
// is libFLAC; if lightcone::io was built without it, a FLAC file is an Error that states so.
#pragma once

#include <cstdint>
#include <string>

#include "lightcone/io/data/array.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc {

// Sound as torchaudio.load() returns it.
struct Audio {
  Array samples;                 // f32 [channels, frames]; whole numbers of a file become -1 to 1
  std::int64_t sample_rate = 0;  // frames a second
};

// True if the library was built with a decoder for FLAC.
bool can_read_flac();

// Reads a WAV or FLAC file, whatever its name. WAV: PCM of 8, 16, 24 and 32 bits, floats of 32 and 64 bits, A-law and
// mu-law, with WAVE_FORMAT_EXTENSIBLE or without, and RF64 and BW64 files of more than 4 GB. Chunks without samples are
// skipped. A size of 2^32 - 1, as programs write that do not know it yet, means up to the end of the file. FLAC: 4 to
// 32 bits, 1 to 8 channels; the MD5 of the samples is checked. Numbers of n bits are divided by 2^(n - 1); f64 is
// rounded. Throws Error, beginning with the path, for damaged and truncated files, and for other formats (MP3, Ogg,
// MP4, AIFF,
// ...), which it names. The samples, and for a FLAC file of unknown length twice as much, count against
// ReadOptions::memory.
Audio read_audio(const std::string& path, const ReadOptions& o = {});
// The same for bytes in memory.
Audio read_audio(const MappedFile& file, const ReadOptions& o = {});

// How write_wav() stores samples.
enum class WavFormat : std::uint8_t { Pcm16, Float32 };
// Writes f32 [channels, frames], or [frames] for one channel, as a WAV file, which appears whole or not at all
// (io/checkpoints/save.h). For Pcm16, samples are multiplied by 2^15, rounded to the nearest, ties to even, and clamped
// to [-2^15, 2^15 - 1], so that what was read from such a file is written unchanged. Throws Error for other arrays, for
// NaN as Pcm16, for more than 65,535 channels, for a rate that is no positive 32-bit number, and for more than 4 GB.
void write_wav(const std::string& path, const ArrayView& samples, std::int64_t sample_rate,
               WavFormat format = WavFormat::Pcm16);

}  // namespace lc
