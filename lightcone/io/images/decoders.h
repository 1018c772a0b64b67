// The decoders, each in a file of its own. Pixels come as rows of red, green and blue bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

struct Pixels {
  std::size_t height, width;
  std::vector<std::uint8_t> bytes;
};
// Error, which begins with the file's path, for what cannot be decoded whole. All memory is taken from the budget
// first.
Pixels decode_jpeg(const MappedFile& file, Budget& budget);
Pixels decode_png(const MappedFile& file, Budget& budget);

}  // namespace lc::io
