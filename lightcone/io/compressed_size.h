// How far a text can be compressed, which says how much it repeats itself.
#pragma once

#include <cstddef>
#include <string_view>

namespace lc::io {

// The number of bytes to which zlib compresses the text at its default level: len(zlib.compress(text)) in Python.
// Throws Error if there is no memory for it.
std::size_t compressed_size(std::string_view text);

}  // namespace lc::io
