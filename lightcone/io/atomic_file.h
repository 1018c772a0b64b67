// AtomicFile writes a file that appears whole or not at all: it is written to an unnamed or temporary file in the same
// folder, forced to the disk, and renamed. The writer keeps a lock on the temporary file, so that the next writer in
// the folder recognises files that a killed writer left, and removes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lc::io {

// Owns a file descriptor and closes it.
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

// A lock on a folder, so that one process at a time works in it. It is a lock of the system (flock), which ends with
// the process in any case and leaves no trace. On a file system without locks no process is refused.
class FolderLock {
 public:
  // Throws Error, beginning with `op`, if the folder cannot be opened or if another process has locked it.
  FolderLock(const std::string& op, const std::string& folder);

 private:
  Descriptor folder_;
};

// Removes the temporary files that killed writers left in a folder; those of living writers stay.
void remove_abandoned(const std::string& folder) noexcept;

// A file that replaces another one on commit().
class AtomicFile {
 public:
  // `op` begins the message of every Error. Throws Error if `path` exists and is not a regular file, or if no file can
  // be created in its folder.
  AtomicFile(std::string op, const std::string& path);
  // Without commit() the old file stays, and the new one is removed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends bytes. Throws Error if the disk is full or the system fails.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  std::uint64_t size() const { return size_; }  // bytes written so far
  // Forces everything to the disk, then replaces the old file. If the folder cannot be forced to the disk after that,
  // the Error states that the new file is in place.
  void commit();

 private:
  void look_at_old(const std::string& path);
  void create();
  void create_named();
  void name_it();
  void flush();
  void write_through(std::span<const std::byte> bytes);
  [[noreturn]] void fail(std::string_view what) const;  // with the system's reason

  std::string op_, path_;                       // as given by the caller
  std::string folder_name_, name_, temporary_;  // name_ and temporary_ are within the folder; "": no temporary name
  Descriptor folder_, file_;
  int mode_ = -1;  // permissions of the replaced file; -1: none
  std::uint64_t size_ = 0;
  std::vector<std::byte> buffer_;  // collects small writes
};

}  // namespace lc::io
