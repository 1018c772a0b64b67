// Sound files that are valid except for false claims, for data_files_test.
#pragma once

#include <string>

#include "mutator.h"

namespace fuzz {

std::string make_wav(Mutator&);
// Frames of constant, verbatim and fixed subframes, with their checksums.
std::string make_flac(Mutator&);

}  // namespace fuzz
