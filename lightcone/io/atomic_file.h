// A file that appears whole or not at all: written under no name or another one in the same folder, forced to the disk,
// renamed. The other name is a file that its writer has locked, so that the next writer in that folder knows what a
// killed one left behind, and removes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lc::io {

// A descriptor that is closed in the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(o.release()) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    if (this != &o) reset(o.release());
    return *this;
  }
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1);

 private:
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  int fd_ = -1;
};

// A folder that one process at a time works in. The lock is the system's (flock): it ends with the process, however
// that ends, and leaves no trace. Where a file system has no locks, nobody is refused.
class FolderLock {
 public:
  // Error, which begins with `op`, where the folder cannot be opened and where another process has locked it.
  FolderLock(const std::string& op, const std::string& folder);

 private:
  Descriptor folder_;
};

// Removes what writers that were killed left in a folder, and nothing of those that live.
void remove_abandoned(const std::string& folder) noexcept;

class AtomicFile {
 public:
  // `op` is what Errors begin with. Error when `path` is there and is no regular file, or nothing can be created beside
  // it.
  AtomicFile(std::string op, const std::string& path);
  // Without commit() the old file stays, and nothing beside it.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  std::uint64_t size() const { return size_; }  // what was written so far
  // Forces everything to the disk, then puts it in the place of the old file. The Error of a folder that cannot be
  // forced to the disk afterwards says that the new file is in place.
  void commit();

 private:
  void look_at_old(const std::string& path);
  void create();
  void create_named();
  void name_it();
  void flush();
  void write_through(std::span<const std::byte> bytes);
  [[noreturn]] void fail(std::string_view what) const;  // with the system's reason

  std::string op_, path_;                       // as the caller knows it
  std::string folder_name_, name_, temporary_;  // the last two within the folder; "": there is no other name now
  Descriptor folder_, file_;
  int mode_ = -1;  // of the file that is replaced
  std::uint64_t size_ = 0;
  std::vector<std::byte> buffer_;  // small writes, gathered
};

}  // namespace lc::io
