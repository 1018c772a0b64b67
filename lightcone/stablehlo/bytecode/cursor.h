// Sequential reading of a file's bytes, with positions for error messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lc::stablehlo {

// A part of the file, from byte `from` up to `to`.
struct Stretch {
  std::size_t from = 0, to = 0;
};

class Cursor {
 public:
  Cursor(std::span<const std::byte> file, Stretch s) : file_(file), at_(s.from), end_(s.to) {}

  [[noreturn]] void fail(const std::string& problem) const { fail_at(at_, problem); }
  [[noreturn]] static void fail_at(std::size_t byte, const std::string& problem);

  std::size_t at() const { return at_; }
  std::size_t left() const { return end_ - at_; }
  bool done() const { return at_ == end_; }

  std::uint8_t byte();
  // Reads one to nine bytes: the number of trailing zeros of the first byte is the number of bytes that follow.
  std::uint64_t varint();
  std::int64_t signed_varint();                     // encoded as 0, -1, 1, -2, ...
  std::pair<std::uint64_t, bool> flagged_varint();  // with a flag in the lowest bit
  // Reads a number of things of which each takes at least a byte, so that a false count cannot reserve much memory.
  std::size_t count(std::string_view of);
  std::size_t index(std::size_t below, std::string_view of);
  std::size_t checked(std::uint64_t index, std::size_t below, std::string_view of) const;

  Stretch take(std::uint64_t bytes);
  std::string_view text(Stretch s) const;
  std::string_view zero_terminated();
  std::span<const std::byte> bytes(Stretch s) const { return file_.subspan(s.from, s.to - s.from); }
  Cursor within(Stretch s) const { return {file_, s}; }

 private:
  std::span<const std::byte> file_;
  std::size_t at_, end_;
};

}  // namespace lc::stablehlo
