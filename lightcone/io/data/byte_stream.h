// Reads bytes in the order of a file, and inflates them if they are deflated. Bytes are unpacked only when they are
// read, so a file that unpacks to more than it states is detected and not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct z_stream_s;

namespace lc::io {

// A sequential reader of bytes.
class ByteStream {
 public:
  enum class Packing { None, Deflate, Gzip };
  // `where` begins the message of every Error: a path, or a path and the member of an archive. The bytes must outlive
  // the stream.
  ByteStream(std::span<const std::byte> bytes, Packing packing, std::string where);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Reads the next bytes. Throws Error if there are fewer, or if the packed data is damaged.
  void read(std::span<std::byte> to);
  // Throws Error if `bytes` more bytes cannot follow, however well the file is packed. Called before memory is
  // allocated for them.
  void expect_room(std::uint64_t bytes, std::string_view what) const;
  // Throws Error if any bytes are left.
  void expect_end();
  std::uint64_t done() const { return done_; }  // unpacked bytes read so far
  std::uint32_t crc() const { return crc_; }    // CRC-32 of these bytes
  const std::string& where() const { return where_; }

 private:
  std::size_t some(std::span<std::byte> to);  // 0 at the end
  std::size_t inflate_some(std::span<std::byte> to);
  bool next_member();
  std::span<const std::byte> rest_;
  std::size_t all_;
  Packing packing_;
  std::string where_;
  std::unique_ptr<z_stream_s> z_;
  bool ended_ = false;
  std::uint64_t done_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace lc::io
