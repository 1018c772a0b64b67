// Bytes in the order of a file, inflated on the way where they are deflated. Nothing is unpacked before it is asked
// for, so a file that unpacks to more than it says is found out and not believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct z_stream_s;

namespace lc::io {

class ByteStream {
 public:
  enum class Packing { None, Deflate, Gzip };
  // `where` begins every Error: a path, or a path and the member of an archive. The bytes must outlive the stream.
  ByteStream(std::span<const std::byte> bytes, Packing packing, std::string where);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // The next bytes; Error when there are fewer, or when what they are unpacked from is damaged.
  void read(std::span<std::byte> to);
  // Error when more than `bytes` could not come, whatever the file unpacks to: called before memory is taken for them.
  void expect_room(std::uint64_t bytes, std::string_view what) const;
  // Error when anything is left.
  void expect_end();
  std::uint64_t done() const { return done_; }  // bytes that were read, unpacked
  std::uint32_t crc() const { return crc_; }    // their CRC-32
  const std::string& where() const { return where_; }

 private:
  std::size_t some(std::span<std::byte> to);  // 0: the end
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
