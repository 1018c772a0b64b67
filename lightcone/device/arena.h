// Offline memory allocation: assigns offsets to blocks that are allocated and freed in a known order.
#pragma once

#include <cstddef>
#include <vector>

namespace lc {

// Records the lifetimes of blocks; settle() then assigns all offsets at once. Sizes are rounded up to whole cache
// lines.
class Arena {
 public:
  // Allocates a block that lives until give(). Throws Error if the live blocks take more than 2^46 bytes.
  std::size_t take(std::size_t bytes);
  // Frees a block.
  void give(std::size_t block);
  // Returns the offset of each block. Blocks with overlapping lifetimes do not overlap. The better of two placements is
  // used, see arena.cpp.
  std::vector<std::size_t> settle();
  std::size_t bytes() const { return bytes_; }             // size of the arena; valid after settle()
  std::size_t alive_bytes() const { return most_alive_; }  // peak of live bytes

 private:
  struct Block {
    std::size_t bytes, begin, end;  // alive between the events `begin` and `end`
  };
  std::vector<std::size_t> replayed(std::size_t& bytes) const;
  std::vector<std::size_t> largest_first(std::size_t& bytes) const;

  std::vector<Block> blocks_;
  std::size_t events_ = 0, alive_ = 0, most_alive_ = 0, bytes_ = 0;
};

}  // namespace lc
