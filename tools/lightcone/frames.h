// A stream of pictures on the standard input: JPEG and PNG files one after another (ffmpeg -f image2pipe), or raw RGB
// frames of one size (ffmpeg -f rawvideo -pix_fmt rgb24).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/io/data/array.h"

namespace lc::tool {

class FrameReader {
 public:
  // `width` and `height` are those of raw frames; 0: the stream has files.
  FrameReader(std::FILE* in, std::int64_t width, std::int64_t height) : in_(in), width_(width), height_(height) {}
  // Returns the next picture, u8 [3, height, width]; nullopt at the end. It reads no further than that picture. Throws
  // Error for a stream that ends within a frame, for other bytes, and for a file of more than 256 MB.
  std::optional<Array> next();
  std::int64_t count() const { return count_; }  // frames so far

 private:
  std::optional<Array> raw();
  bool take(std::size_t n);  // reads n more bytes; false if there is not one of them
  void need(std::size_t n);
  std::uint8_t byte();  // the next one
  void read_png();
  void read_jpeg();
  std::uint8_t at_end(std::size_t back) const { return bytes_[bytes_.size() - back]; }
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const;

  std::FILE* in_;
  std::int64_t width_, height_, count_ = 0;
  std::vector<std::uint8_t> bytes_ = {};  // the frame so far
};

}  // namespace lc::tool
