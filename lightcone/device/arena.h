// Where blocks of memory lie that are taken and given back in a known order.
#pragma once

#include <cstddef>
#include <vector>

namespace lc {

// Records who is alive when; places all blocks at the end. Sizes are rounded up to whole lines of a cache.
class Arena {
 public:
  // A block of so many bytes, alive from now on until it is given back. An Error where all that is alive takes more
  // than 2^46 bytes.
  std::size_t take(std::size_t bytes);
  void give(std::size_t block);
  // The offset of each block: no two that are alive together overlap. By the better of two ways, see settle() in
  // arena.cpp.
  std::vector<std::size_t> settle();
  std::size_t bytes() const { return bytes_; }             // of the whole, behind settle()
  std::size_t alive_bytes() const { return most_alive_; }  // the most at once

 private:
  struct Block {
    std::size_t bytes, begin, end;  // alive between these two events
  };
  std::vector<std::size_t> replayed(std::size_t& bytes) const;
  std::vector<std::size_t> largest_first(std::size_t& bytes) const;

  std::vector<Block> blocks_;
  std::size_t events_ = 0, alive_ = 0, most_alive_ = 0, bytes_ = 0;
};

}  // namespace lc
