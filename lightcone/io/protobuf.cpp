#include "lightcone/io/protobuf.h"

#include <bit>
#include <cstring>

#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

namespace lc {

void ProtobufFields::damaged(std::string_view why) const { throw file_error(op_, path_, damage_, ": ", why); }
void ProtobufFields::unknown(const char* message) const {
  throw file_error(op_, path_, message, " has a field ", field_, ", which is not known");
}

std::uint64_t ProtobufFields::varint(std::span<const std::byte> from, std::size_t& at, bool& good) {
  std::uint64_t v = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at >= from.size()) break;
    const auto byte = std::to_integer<std::uint64_t>(from[at++]);
    v |= (byte & 127) << shift;
    if (byte < 128) return v;
  }
  good = false;
  return 0;
}
std::uint64_t ProtobufFields::varint() {
  bool good = true;
  const std::uint64_t v = varint(all_, at_, good);
  if (!good) damaged("a number in it does not end");
  return v;
}
std::span<const std::byte> ProtobufFields::take(std::uint64_t n) {
  if (n > all_.size() - at_) damaged("a field is longer than the message that holds it");
  const auto part = all_.subspan(at_, n);
  at_ += n;
  return part;
}

bool ProtobufFields::next() {
  if (at_ >= all_.size()) return false;
  const std::uint64_t key = varint();
  field_ = key >> 3, type_ = static_cast<int>(key & 7);
  switch (type_) {
    case kVarint: number_ = varint(); break;
    case kEight: bytes_ = take(8); break;
    case kBytes: bytes_ = take(varint()); break;
    case kFour: bytes_ = take(4); break;
    default: damaged("a field has no wire type of protocol buffers");
  }
  return true;
}

std::int64_t ProtobufFields::integer() const {
  if (type_ != kVarint) damaged("a number is expected");
  return std::bit_cast<std::int64_t>(number_);
}
float ProtobufFields::f32() const {
  if (type_ != kFour) damaged("a float is expected");
  float v;
  std::memcpy(&v, bytes_.data(), sizeof v);
  return v;
}
double ProtobufFields::f64() const {
  if (type_ != kEight) damaged("a double is expected");
  double v;
  std::memcpy(&v, bytes_.data(), sizeof v);
  return v;
}
std::span<const std::byte> ProtobufFields::bytes() const {
  if (type_ != kBytes) damaged("a message is expected");
  return bytes_;
}
std::string_view ProtobufFields::text(const char* what) const {
  const auto b = bytes();
  const std::string_view s(reinterpret_cast<const char*>(b.data()), b.size());
  require_utf8(s, what);
  return s;
}

void ProtobufFields::append(std::vector<std::int64_t>& to) const {
  if (type_ == kVarint) {
    to.push_back(integer());
    return;
  }
  bool good = true;
  const auto packed = bytes();
  for (std::size_t at = 0; at < packed.size() && good;)
    to.push_back(std::bit_cast<std::int64_t>(varint(packed, at, good)));
  if (!good) damaged("a number in it does not end");
}
void ProtobufFields::append(std::vector<float>& to) const {
  if (type_ == kFour) {
    to.push_back(f32());
    return;
  }
  const auto packed = bytes();
  if (packed.size() % 4) damaged("packed floats have a length that is no multiple of 4");
  const std::size_t before = to.size();
  to.resize(before + packed.size() / 4);
  if (!packed.empty()) std::memcpy(to.data() + before, packed.data(), packed.size());
}

}  // namespace lc
