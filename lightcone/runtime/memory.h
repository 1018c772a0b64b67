// Memory: zeroed pages from the system. Untouched pages cost nothing, large blocks ask for huge
// pages, and a failure is an Error.
#pragma once

#include <cstddef>

namespace lc {

class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lc
