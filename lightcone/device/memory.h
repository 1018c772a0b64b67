// Zeroed memory from the system. Untouched pages take no memory. Large blocks request huge pages, except blocks that
// shall take no more than what was touched (Pages::Small). A failed allocation throws Error. Reserved is a range of
// addresses that gets memory piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lc {

enum class Pages : std::uint8_t { Huge, Small };

class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes, Pages pages = Pages::Huge);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  void zero(std::size_t at, std::size_t bytes);  // returns whole pages to the system

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A range of addresses. A piece of it is usable after commit(): from then on the system accounts for its memory (if it
// keeps such accounts), and provides it on first touch. A small range is committed at once.
class Reserved {
 public:
  Reserved() = default;
  explicit Reserved(std::size_t bytes);  // reserved() tells whether the system had that many addresses
  Reserved(Reserved&& other) noexcept;
  Reserved& operator=(Reserved&& other) noexcept;
  ~Reserved();
  bool reserved() const { return data_ != nullptr; }
  // Makes a piece usable. Returns false if the system has no memory for it. Committing a piece again is free.
  bool commit(std::size_t at, std::size_t bytes);
  bool commit_all() { return commit(0, bytes_); }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  std::size_t committed() const { return committed_; }  // bytes committed so far

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0, committed_ = 0;
  std::vector<bool> granules_;  // committed granules; empty if all are
};

}  // namespace lc
