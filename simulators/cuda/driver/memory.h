// The device's memory and pinned host memory. A device address is an address of this process, and each allocation lies
// between inaccessible pages.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "driver/codes.h"

namespace lc::simulators::cuda {

using Address = std::uint64_t;

inline char* pointer(Address a) { return reinterpret_cast<char*>(a); }
inline Address address(const void* p) { return reinterpret_cast<Address>(p); }

// cuMemAlloc: memory is filled with 0xFF (NaN). Its end, aligned to 256 bytes, is the end of a page. Freed memory stays
// inaccessible until much more has been freed.
class Allocations {
 public:
  ~Allocations() { clear(); }
  Code allocate(std::size_t bytes, Address* out);
  Code free(Address a);  // kIllegalAddress if bytes next to it were written; it is freed nevertheless
  bool holds(Address a, std::size_t bytes) const;
  std::size_t used() const { return used_; }
  std::size_t count() const { return blocks_.size(); }
  void clear();

 private:
  struct Block {
    char* pages;  // an inaccessible page, the data's pages, another inaccessible page
    std::size_t page_bytes, bytes;
  };
  void close(const Block& b);

  std::map<Address, Block> blocks_;
  std::deque<Block> closed_;
  std::size_t used_ = 0;
};

// cuMemCreate: physical memory without an address.
class Physical {
 public:
  Physical(int file, std::size_t bytes, std::size_t& used) : file_(file), bytes_(bytes), used_(used) { used_ += bytes; }
  ~Physical();
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  int file() const { return file_; }
  std::size_t bytes() const { return bytes_; }

 private:
  int file_;
  std::size_t bytes_;
  std::size_t& used_;
};

// cuMemAddressReserve and the mappings in reserved ranges.
class AddressSpace {
 public:
  static constexpr std::size_t kGranularity = 2 << 20;
  ~AddressSpace() { clear(); }
  Code create(std::size_t bytes, Address* handle);
  Code release(Address handle);
  Code reserve(std::size_t bytes, std::size_t alignment, Address* out);
  Code unreserve(Address a, std::size_t bytes);
  Code map(Address a, std::size_t bytes, Address handle);
  Code unmap(Address a, std::size_t bytes);
  Code set_access(Address a, std::size_t bytes, unsigned flags);
  bool holds(Address a, std::size_t bytes) const;  // mapped and accessible to the device
  std::size_t used() const { return used_; }
  std::size_t reservations() const { return reserved_.size(); }
  std::size_t physical() const { return handles_.size(); }
  std::size_t mapped() const { return mapped_.size(); }
  void clear();

 private:
  struct Mapping {
    std::size_t bytes;
    std::shared_ptr<Physical> physical;
    bool open;
  };
  bool whole_mappings(Address a, std::size_t bytes) const;

  std::size_t used_ = 0;  // declared before handles_ and mapped_, because their destruction lowers it
  std::map<Address, std::size_t> reserved_;
  std::map<Address, std::shared_ptr<Physical>> handles_;
  std::map<Address, Mapping> mapped_;
  Address next_handle_ = 1;
};

// cuMemHostAlloc and cuMemHostRegister.
class PinnedMemory {
 public:
  ~PinnedMemory() { clear(); }
  Code allocate(std::size_t bytes, void** out);
  Code free(void* p);
  Code enroll(void* p, std::size_t bytes);
  Code discharge(void* p);
  bool holds(const void* p, std::size_t bytes) const;
  std::size_t bytes() const;
  std::size_t count() const { return ranges_.size(); }
  void clear();

 private:
  struct Range {
    std::size_t bytes;
    bool own;
  };
  bool overlaps(Address a, std::size_t bytes) const;
  std::map<Address, Range> ranges_;
};

}  // namespace lc::simulators::cuda
