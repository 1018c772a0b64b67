#include <turbojpeg.h>

#include <memory>
#include <string>
#include <string_view>

#include "lightcone/io/images/decoders.h"
#include "lightcone/io/printable.h"

namespace lc::io {

Pixels decode_jpeg(const MappedFile& file, Budget& budget) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  const auto fail = [&](std::string_view what) -> Error {
    return file_error("load", file.path(), "not a sound JPEG: ", what);
  };
  if (!decoder) throw fail("the decoder cannot be started");
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.bytes().data());
  const auto size = static_cast<unsigned long>(file.bytes().size());
  // A warning means missing pixels, except for bytes between two segments, which some cameras write.
  const auto in_the_way = [&]() -> bool {
    const std::string why = tjGetErrorStr2(decoder.get());
    if (tjGetErrorCode(decoder.get()) == TJERR_FATAL || why.find("extraneous bytes") == why.npos) throw fail(why);
    return true;
  };
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), bytes, size, &width, &height, &sampling, &colours) != 0) in_the_way();
  if (colours == TJCS_CMYK || colours == TJCS_YCCK)
    throw file_error("load", file.path(), "a JPEG in CMYK; red, green and blue or grey are read");
  Pixels p{static_cast<std::size_t>(height), static_cast<std::size_t>(width), {}};
  budget.take(p.height * p.width, 9);  // the pixels, and the coefficients of a progressive file
  p.bytes.resize(p.height * p.width * 3);
  const auto decompress = [&](int flags) {
    return tjDecompress2(decoder.get(), bytes, size, p.bytes.data(), width, 0, height, TJPF_RGB,
                         TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS | flags);
  };
  if (decompress(TJFLAG_STOPONWARNING) != 0 && in_the_way() && decompress(0) != 0) in_the_way();
  return p;
}

std::vector<std::byte> encode_jpeg(const Pixels& p, int channels, int quality, const std::string& path) {
  const std::unique_ptr<void, int (*)(tjhandle)> encoder(tjInitCompress(), tjDestroy);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int done = !encoder ? -1
                            : tjCompress2(encoder.get(), p.bytes.data(), static_cast<int>(p.width), 0,
                                          static_cast<int>(p.height), channels == 1 ? TJPF_GRAY : TJPF_RGB, &bytes,
                                          &size, channels == 1 ? TJSAMP_GRAY : TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  if (done != 0)
    throw file_error("write_jpeg", path, encoder ? tjGetErrorStr2(encoder.get()) : "the encoder cannot be started");
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  return {begin, begin + size};
}

}  // namespace lc::io
