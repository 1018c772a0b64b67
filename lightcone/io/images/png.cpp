#include <png.h>

#include <memory>

#include "lightcone/io/images/decoders.h"
#include "lightcone/io/printable.h"

namespace lc::io {

Pixels decode_png(const MappedFile& file, Budget& budget) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> freed(&image, png_image_free);
  const auto fail = [&] { return file_error("load", file.path(), "not a sound PNG: ", image.message); };
  if (!png_image_begin_read_from_memory(&image, file.bytes().data(), file.bytes().size())) throw fail();
  const bool transparent = image.format & PNG_FORMAT_FLAG_ALPHA;  // without a fourth channel it would be painted in
  image.format = transparent ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  Pixels p{image.height, image.width, transparent ? 4u : 3u, {}};
  // Deflate makes at most 1032 bytes of one; a row has a byte for its filter, and a pixel is a bit or more. Without the
  // first of the two a column of millions of rows, each of which is looked at, would take seconds.
  if (p.height * (1 + (p.width + 7) / 8) / 1032 > file.bytes().size())
    throw file_error("load", file.path(), "not a sound PNG: it says ", p.height, " x ", p.width, " pixels, which its ",
                     file.bytes().size(), " bytes cannot hold");
  budget.take(p.height * p.width, 9);  // the pixels, and the rows of an interlaced file
  p.bytes.resize(p.height * p.width * p.channels);
  if (!png_image_finish_read(&image, nullptr, p.bytes.data(), 0, nullptr)) throw fail();
  return p;
}

}  // namespace lc::io
