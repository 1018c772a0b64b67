// Memory: zeroed pages from the system. Untouched pages cost nothing, large blocks ask for huge
// pages (but those that are to take what was touched and no more), and a failure is an Error. Reserved: addresses that
// get memory piece by piece.
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
  void zero(std::size_t at, std::size_t bytes);  // whole pages are given back to the system

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A range of addresses. A piece of it may be used once it was committed: then the system owes it memory (where it keeps
// such accounts), and gives it when it is touched. A small range is committed at once.
class Reserved {
 public:
  Reserved() = default;
  explicit Reserved(std::size_t bytes);  // reserved() says whether the system had that many addresses
  Reserved(Reserved&& other) noexcept;
  Reserved& operator=(Reserved&& other) noexcept;
  ~Reserved();
  bool reserved() const { return data_ != nullptr; }
  // False when the system has no memory for it. What is committed already costs nothing.
  bool commit(std::size_t at, std::size_t bytes);
  bool commit_all() { return commit(0, bytes_); }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  std::size_t committed() const { return committed_; }  // bytes

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0, committed_ = 0;
  std::vector<bool> granules_;  // which are committed; none where all is
};

}  // namespace lc
