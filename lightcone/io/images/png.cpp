#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <new>
#include <string_view>

#include "lightcone/io/images/decoders.h"
#include "lightcone/io/printable.h"

namespace lc::io {
namespace {

// On an error libpng leaves its functions by longjmp(), which runs no destructors; so the functions that call it have
// no objects with destructors.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> file) : rest_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, wrong, [](png_structp, png_const_charp) {});
    if (png_) info_ = png_create_info_struct(png_);
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  bool ready() const { return info_; }
  std::string_view why() const { return why_; }

  // Samples are taken unchanged, as in Pillow: gamma and colour spaces of the file are ignored.
  bool header() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, this, read);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // keeps only the chunks of the picture
    png_read_info(png_, info_);
    height = png_get_image_height(png_, info_), width = png_get_image_width(png_, info_);
    const auto colours = png_get_color_type(png_, info_);
    png_set_strip_16(png_);  // keeps the upper byte of two
    if (colours == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    else if (!(colours & PNG_COLOR_MASK_COLOR)) png_set_expand_gray_1_2_4_to_8(png_), png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  std::size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  bool rows(png_bytep to) {
    if (setjmp(png_jmpbuf(png_))) return false;
    for (int pass = 0; pass < passes_; ++pass)
      for (std::size_t y = 0; y < height; ++y) png_read_row(png_, to + y * width * 3, nullptr);
    return true;
  }

  std::size_t height = 0, width = 0;

 private:
  static void read(png_structp png, png_bytep to, std::size_t bytes) {
    auto& d = *static_cast<Decoder*>(png_get_io_ptr(png));
    if (bytes > d.rest_.size()) png_error(png, "it ends too early");
    std::memcpy(to, d.rest_.data(), bytes);
    d.rest_ = d.rest_.subspan(bytes);
  }
  [[noreturn]] static void wrong(png_structp png, png_const_charp why) {
    auto& d = *static_cast<Decoder*>(png_get_error_ptr(png));
    std::strncpy(d.why_, why, sizeof d.why_ - 1);
    png_longjmp(png, 1);
  }

  std::span<const std::byte> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  char why_[160] = {};
};

// The same for writing. Bytes are appended to an object that outlives the jump.
class Encoder {
 public:
  explicit Encoder(std::vector<std::byte>& to) : to_(to) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, wrong, [](png_structp, png_const_charp) {});
    if (png_) info_ = png_create_info_struct(png_);
  }
  ~Encoder() { png_destroy_write_struct(&png_, &info_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  bool ready() const { return info_; }
  std::string_view why() const { return why_; }

  bool write(const std::uint8_t* rows, std::size_t height, std::size_t width, int channels) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_write_fn(png_, this, append, [](png_structp) {});
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8,
                 channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    for (std::size_t y = 0; y < height; ++y) png_write_row(png_, rows + y * width * static_cast<std::size_t>(channels));
    png_write_end(png_, info_);
    return true;
  }

 private:
  static void append(png_structp png, png_bytep from, std::size_t bytes) {
    auto& e = *static_cast<Encoder*>(png_get_io_ptr(png));
    try {
      const auto* begin = reinterpret_cast<const std::byte*>(from);
      e.to_.insert(e.to_.end(), begin, begin + bytes);
      return;
    } catch (const std::bad_alloc&) {
    }
    png_error(png, "there is no memory left");
  }
  [[noreturn]] static void wrong(png_structp png, png_const_charp why) {
    auto& e = *static_cast<Encoder*>(png_get_error_ptr(png));
    std::strncpy(e.why_, why, sizeof e.why_ - 1);
    png_longjmp(png, 1);
  }

  std::vector<std::byte>& to_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char why_[160] = {};
};

}  // namespace

std::vector<std::byte> encode_png(const Pixels& p, int channels, const std::string& path) {
  std::vector<std::byte> bytes;
  Encoder e(bytes);
  if (!e.ready()) throw file_error("write_png", path, "the encoder cannot be started");
  if (!e.write(p.bytes.data(), p.height, p.width, channels)) throw file_error("write_png", path, e.why());
  return bytes;
}

Pixels decode_png(const MappedFile& file, Budget& budget) {
  Decoder d(file.bytes());
  const auto fail = [&](std::string_view why) { return file_error("load", file.path(), "not a sound PNG: ", why); };
  if (!d.ready()) throw fail("the decoder cannot be started");
  if (!d.header()) throw fail(d.why());
  Pixels p{d.height, d.width, {}};
  // Deflate expands one byte to at most 1032; a row has a filter byte, and a pixel has at least one bit. Without this
  // check a picture of one column and millions of rows, each of which is processed, would take seconds.
  if (p.height * (1 + (p.width + 7) / 8) / 1032 > file.bytes().size())
    throw file_error("load", file.path(), "not a sound PNG: it says ", p.height, " x ", p.width, " pixels, which its ",
                     file.bytes().size(), " bytes cannot hold");
  if (d.row_bytes() != p.width * 3) throw fail("its rows are not of red, green and blue bytes");
  budget.take(p.height * p.width, 9);  // the pixels, and the decoder's rows of up to four samples of two bytes
  p.bytes.resize(p.height * p.width * 3);
  if (!d.rows(p.bytes.data())) throw fail(d.why());
  return p;
}

}  // namespace lc::io
