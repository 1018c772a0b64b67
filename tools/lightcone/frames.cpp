#include "frames.h"

#include <algorithm>

#include "command.h"
#include "lightcone/base/error.h"
#include "lightcone/io/images/images.h"
#include "train/table.h"

namespace lc::tool {
namespace {

constexpr std::size_t kLargest = std::size_t{256} << 20;
constexpr std::size_t kAtOnce = std::size_t{1} << 20;  // no false length makes memory grow by more than is there

}  // namespace

template <class... Ts>
void FrameReader::fail(const Ts&... what) const {
  throw Error("detect", str_cat("the standard input, frame ", count_, " (from 0): ", what...));
}

bool FrameReader::take(std::size_t n) {
  if (bytes_.size() + n > kLargest) fail("it has more than ", kLargest >> 20, " MB");
  for (std::size_t left = n; left > 0;) {
    const std::size_t before = bytes_.size(), part = std::min(left, kAtOnce);
    bytes_.resize(before + part);
    const std::size_t got = std::fread(bytes_.data() + before, 1, part, in_);
    bytes_.resize(before + got);
    if (got == 0 && left == n) return false;
    if (got < part) fail("the stream ends within it");
    left -= part;
  }
  return true;
}
void FrameReader::need(std::size_t n) {
  if (n > 0 && !take(n)) fail("the stream ends within it");
}
std::uint8_t FrameReader::byte() {
  const int c = std::getc(in_);
  if (c == EOF) fail("the stream ends within it");
  if (bytes_.size() >= kLargest) fail("it has more than ", kLargest >> 20, " MB");
  bytes_.push_back(static_cast<std::uint8_t>(c));
  return bytes_.back();
}

// Chunks of a length, a name, the data and a checksum, up to IEND.
void FrameReader::read_png() {
  need(6);  // the rest of the signature
  for (bool last = false; !last;) {
    need(8);
    std::size_t length = 0;
    for (std::size_t k = 8; k > 4; --k) length = length << 8 | at_end(k);
    last = at_end(4) == 'I' && at_end(3) == 'E' && at_end(2) == 'N' && at_end(1) == 'D';
    need(length + 4);
  }
}

// Segments of a marker, a length and the data, and after a start of scan data without markers, up to the end of image.
void FrameReader::read_jpeg() {
  constexpr std::uint8_t kEnd = 0xD9, kScan = 0xDA;
  const auto alone = [](std::uint8_t m) { return m == 0x01 || (m >= 0xD0 && m <= 0xD7); };
  bool scanned = false;
  while (true) {
    if (byte() != 0xFF) {
      if (!scanned) fail("it is no JPEG from its byte ", bytes_.size() - 1, " on");
      continue;
    }
    std::uint8_t marker = byte();
    while (marker == 0xFF) marker = byte();  // markers may be filled up
    if (marker == kEnd) return;
    if (marker == 0x00 || alone(marker)) continue;
    need(2);
    const std::size_t length = std::size_t{at_end(2)} << 8 | at_end(1);
    if (length < 2) fail("a segment of its JPEG has a length of ", length);
    need(length - 2);
    scanned = marker == kScan;
  }
}

std::optional<Array> FrameReader::raw() {
  const auto pixels = static_cast<std::size_t>(width_ * height_);
  bytes_.clear();
  if (!take(3 * pixels)) return std::nullopt;
  Array a = Array::zeros(DType::U8, {3, height_, width_});
  const auto to = a.values<std::uint8_t>();
  for (std::size_t k = 0; k < pixels; ++k)
    for (std::size_t c = 0; c < 3; ++c) to[c * pixels + k] = bytes_[3 * k + c];
  ++count_;
  return a;
}

std::optional<Array> FrameReader::next() {
  if (width_ > 0) return raw();
  bytes_.clear();
  if (!take(1)) return std::nullopt;
  need(1);
  if (at_end(2) == 0xFF && at_end(1) == 0xD8) read_jpeg();
  else if (at_end(2) == 0x89 && at_end(1) == 'P') read_png();
  else
    fail("it is neither a JPEG nor a PNG; raw frames need their size, --frames WIDTHxHEIGHT, and are ",
         "3 bytes a pixel (ffmpeg -f rawvideo -pix_fmt rgb24)");
  const auto file = MappedFile::view(str_cat("frame ", count_), std::as_bytes(std::span(bytes_)));
  Array a = read_image(*file, kOwnFiles);
  ++count_;
  return a;
}

}  // namespace lc::tool
