// The decoders and encoders, each format in a file of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

// A picture as rows of red, green and blue bytes.
struct Pixels {
  std::size_t height, width;
  std::vector<std::uint8_t> bytes;
};
// Decodes a picture. Throws Error, beginning with the path of the file, if it cannot be decoded completely. All memory
// is taken from the budget before it is allocated.
Pixels decode_jpeg(const MappedFile& file, Budget& budget);
Pixels decode_png(const MappedFile& file, Budget& budget);

// Encode rows of `channels` (1 or 3) bytes a pixel; the Error begins with `op` and the path.
std::vector<std::byte> encode_jpeg(const Pixels& p, int channels, int quality, const std::string& path);
std::vector<std::byte> encode_png(const Pixels& p, int channels, const std::string& path);

}  // namespace lc::io
