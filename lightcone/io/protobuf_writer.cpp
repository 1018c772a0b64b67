#include "lightcone/io/protobuf_writer.h"

#include <bit>

namespace lc {
namespace {

enum WireType : std::uint64_t { kVarintType = 0, kBytesType = 2, kFourType = 5 };

}  // namespace

void ProtobufWriter::varint(std::uint64_t v) {
  for (; v >= 128; v >>= 7) all_ += static_cast<char>((v & 127) | 128);
  all_ += static_cast<char>(v);
}

void ProtobufWriter::integer(std::uint64_t field, std::int64_t v) {
  varint(field << 3 | kVarintType);
  varint(static_cast<std::uint64_t>(v));
}

void ProtobufWriter::f32(std::uint64_t field, float v) {
  varint(field << 3 | kFourType);
  const auto bits = std::bit_cast<std::uint32_t>(v);
  for (int k = 0; k < 4; ++k) all_ += static_cast<char>(bits >> (8 * k) & 255);
}

void ProtobufWriter::begin(std::uint64_t field, std::uint64_t size) {
  varint(field << 3 | kBytesType);
  varint(size);
}

void ProtobufWriter::bytes(std::uint64_t field, std::span<const std::byte> v) {
  begin(field, v.size());
  all_.append(reinterpret_cast<const char*>(v.data()), v.size());
}

}  // namespace lc
