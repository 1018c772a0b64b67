#include "lightcone/io/atomic_file.h"
#include "lightcone/io/images/decoders.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

// The picture with the colours of a pixel adjacent.
io::Pixels interleaved(const char* op, const ArrayView& a) {
  const bool picture = a.dtype == DType::U8 && a.shape.size() == 3 && (a.shape[0] == 1 || a.shape[0] == 3) &&
                       a.shape[1] >= 1 && a.shape[2] >= 1 && a.shape[1] < 1 << 16 && a.shape[2] < 1 << 16;
  if (!picture) {
    std::string shape;
    for (const std::int64_t n : a.shape) shape += str_cat(shape.empty() ? "" : ", ", n);
    throw Error(op,
                str_cat("needs a picture u8 [3, height, width] or [1, height, width] of 1 to 65535 pixels a side, not ",
                        name(a.dtype), " [", shape, "]"));
  }
  const auto channels = static_cast<std::size_t>(a.shape[0]);
  io::Pixels p{static_cast<std::size_t>(a.shape[1]), static_cast<std::size_t>(a.shape[2]), {}};
  const std::size_t pixels = p.height * p.width;
  p.bytes.resize(pixels * channels);
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t k = 0; k < pixels; ++k)
      p.bytes[k * channels + c] = std::to_integer<std::uint8_t>(a.bytes[c * pixels + k]);
  return p;
}

[[maybe_unused]] void save(const char* op, const std::string& path, const std::vector<std::byte>& bytes) {
  io::AtomicFile file(op, path);
  file.write(bytes);
  file.commit();
}
[[maybe_unused]] Error no_encoders(const char* op, const std::string& path) {
  return file_error(op, path, "this build of lightcone::io has no encoders for pictures: with the packages ",
                    "libturbojpeg0-dev and libpng-dev it finds them when it is configured");
}

}  // namespace

void write_png(const std::string& path, const ArrayView& picture) {
  const io::Pixels p = interleaved("write_png", picture);
#ifdef LIGHTCONE_IMAGES
  save("write_png", path, io::encode_png(p, static_cast<int>(picture.shape[0]), path));
#else
  throw no_encoders("write_png", path);
#endif
}

void write_jpeg(const std::string& path, const ArrayView& picture, int quality) {
  if (quality < 1 || quality > 100) throw Error("write_jpeg", str_cat("a quality of ", quality, ": it is 1 to 100"));
  const io::Pixels p = interleaved("write_jpeg", picture);
#ifdef LIGHTCONE_IMAGES
  save("write_jpeg", path, io::encode_jpeg(p, static_cast<int>(picture.shape[0]), quality, path));
#else
  throw no_encoders("write_jpeg", path);
#endif
}

}  // namespace lc
