// The .npy within a stream of bytes: a file, or a member of an archive.
#pragma once

#include "lightcone/io/data/array.h"
#include "lightcone/io/data/byte_stream.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

Array read_npy_stream(ByteStream& from, Budget& budget);

}  // namespace lc::io
