#include "lightcone/stablehlo/bytecode/cursor.h"

#include <bit>

#include "lightcone/base/error.h"

namespace lc::stablehlo {

void Cursor::fail_at(std::size_t byte, const std::string& problem) {
  throw Error("stablehlo", str_cat("byte ", byte, ": ", problem));
}

std::uint8_t Cursor::byte() {
  if (done()) fail("the file, or a section of it, ends too early");
  return std::to_integer<std::uint8_t>(file_[at_++]);
}

std::uint64_t Cursor::varint() {
  const std::uint8_t first = byte();
  const int more = std::countr_zero(first);  // 8 for a zero byte
  std::uint64_t v = more < 8 ? std::uint64_t{first} >> (more + 1) : 0;
  const int had = more < 8 ? 7 - more : 0;
  for (int k = 0; k < more; ++k) v |= std::uint64_t{byte()} << (had + 8 * k);
  return v;
}

std::int64_t Cursor::signed_varint() {
  const std::uint64_t v = varint();
  return static_cast<std::int64_t>(v >> 1 ^ (v & 1 ? ~std::uint64_t{0} : 0));
}

std::pair<std::uint64_t, bool> Cursor::flagged_varint() {
  const std::uint64_t v = varint();
  return {v >> 1, v & 1};
}

std::size_t Cursor::count(std::string_view of) {
  const std::size_t from = at_;
  const std::uint64_t n = varint();
  if (n > left()) fail_at(from, str_cat(n, " ", of, " are said to follow, and ", left(), " bytes do"));
  return static_cast<std::size_t>(n);
}

std::size_t Cursor::index(std::size_t below, std::string_view of) {
  const std::size_t from = at_;
  const std::uint64_t k = varint();
  if (k >= below) fail_at(from, str_cat("there is no ", of, " ", k, ": there are ", below));
  return static_cast<std::size_t>(k);
}
std::size_t Cursor::checked(std::uint64_t index, std::size_t below, std::string_view of) const {
  if (index >= below) fail(str_cat("there is no ", of, " ", index, ": there are ", below));
  return static_cast<std::size_t>(index);
}

Stretch Cursor::take(std::uint64_t bytes) {
  if (bytes > left()) fail(str_cat(bytes, " bytes are said to follow, and ", left(), " do"));
  const Stretch s{at_, at_ + static_cast<std::size_t>(bytes)};
  at_ = s.to;
  return s;
}

std::string_view Cursor::text(Stretch s) const {
  return {reinterpret_cast<const char*>(file_.data()) + s.from, s.to - s.from};
}

std::string_view Cursor::zero_terminated() {
  const std::size_t from = at_;
  while (byte() != 0) {
  }
  return text({from, at_ - 1});
}

}  // namespace lc::stablehlo
