// Protocol buffers' wire format: the fields of one message, one after another, without copies and without a schema.
// https://protobuf.dev/programming-guides/encoding
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lc {

// Reads a message. Each accessor throws Error unless the field has its wire type. Integers and floats of repeated
// fields may be packed or single.
//
//   for (ProtobufFields f(bytes, "onnx", path); f.next();)
//     if (f.field() == 1) version = f.integer();
//     else f.unknown("a model");
class ProtobufFields {
 public:
  // `op`, `path` and `damage`, which begins the problem of a damaged message, must outlive the object.
  ProtobufFields(std::span<const std::byte> message, const char* op, std::string_view path,
                 const char* damage = "is damaged")
      : all_(message), op_(op), damage_(damage), path_(path) {}

  bool next();  // advances to the next field; false at the end
  std::uint64_t field() const { return field_; }

  std::int64_t integer() const;                              // int32, int64, uint64, bool, enum
  float f32() const;                                         // float
  double f64() const;                                        // double
  std::span<const std::byte> bytes() const;                  // bytes or a message
  std::string_view text(const char* what = "a text") const;  // a string; throws Error unless it is UTF-8
  void append(std::vector<std::int64_t>& to) const;          // repeated integers
  void append(std::vector<float>& to) const;                 // repeated floats
  // Throws an Error that names a field which the message is not known to have.
  [[noreturn]] void unknown(const char* message) const;
  [[noreturn]] void damaged(std::string_view why) const;

 private:
  enum Wire { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };
  static std::uint64_t varint(std::span<const std::byte> from, std::size_t& at, bool& good);
  std::uint64_t varint();
  std::span<const std::byte> take(std::uint64_t n);

  std::span<const std::byte> all_, bytes_ = {};
  const char *op_, *damage_;
  std::string_view path_;
  std::size_t at_ = 0;
  int type_ = 0;
  std::uint64_t field_ = 0, number_ = 0;
};

}  // namespace lc
