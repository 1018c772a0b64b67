#include "lightcone/io/compressed_size.h"

#include <zlib.h>

#include <vector>

#include "lightcone/base/error.h"

namespace lc::io {

std::size_t compressed_size(std::string_view text) {
  uLongf size = ::compressBound(text.size());
  std::vector<Bytef> packed(size);
  if (::compress(packed.data(), &size, reinterpret_cast<const Bytef*>(text.data()), text.size()) != Z_OK)
    throw Error("compressed_size", str_cat("zlib cannot compress a text of ", text.size(), " bytes"));
  return size;
}

}  // namespace lc::io
