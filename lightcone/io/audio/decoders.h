// The decoders, each in a file of its own.
#pragma once

#include "lightcone/io/audio/audio.h"

namespace lc::io {

// Decode a file that begins as one of theirs. All memory for samples is taken from the budget before it is allocated.
Audio decode_wav(const MappedFile& file, Budget& budget);
Audio decode_flac(const MappedFile& file, Budget& budget);

}  // namespace lc::io
