// Writes protocol buffers' wire format, which protobuf.h reads: the fields of one message, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lc {

// Collects the fields of a message. A message inside of another one is written first and then added by message().
class ProtobufWriter {
 public:
  void integer(std::uint64_t field, std::int64_t v);  // int32, int64, bool, enum
  void f32(std::uint64_t field, float v);
  void bytes(std::uint64_t field, std::span<const std::byte> v);
  void text(std::uint64_t field, std::string_view v) { bytes(field, std::as_bytes(std::span(v.data(), v.size()))); }
  void message(std::uint64_t field, const ProtobufWriter& m) { text(field, m.all_); }
  void append(const ProtobufWriter& fields) { all_ += fields.all_; }  // adds fields of the same message
  // Begins a field of `size` bytes, which the caller writes after it: for bytes that are not to be copied.
  void begin(std::uint64_t field, std::uint64_t size);

  const std::string& str() const { return all_; }
  std::size_t size() const { return all_.size(); }

 private:
  void varint(std::uint64_t v);
  std::string all_;
};

}  // namespace lc
