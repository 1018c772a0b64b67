// MappedFile: the bytes of a file, mapped into memory read-only, or a copy of them.
#pragma once

#include "lightcone/macros_off.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace lc {

// The bytes of a file. Shared by everything that refers to them.
class MappedFile {
 public:
  // Maps a file. Throws Error if it is missing, not readable, not a regular file, or empty. If the file is truncated
  // while it is mapped, reading the lost pages raises SIGBUS, which ends the process. If others may write to the file,
  // use read().
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // Copies a file into memory, so that later changes of the file do not matter. Also throws Error if it has more than
  // `limit` bytes.
  static std::shared_ptr<const MappedFile> read(const std::string& path,
                                                std::size_t limit = std::numeric_limits<std::size_t>::max());
  // Refers to bytes that are already in memory (a model built into a program). They must outlive the object.
  static std::shared_ptr<const MappedFile> view(std::string name, std::span<const std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }  // the contents of the file
  const std::string& path() const { return path_; }            // the path, or the name of a view
  // Hints that these bytes will not be read soon. The system reclaims their memory and reads them from the file again
  // if necessary. It does nothing for a copy, which nothing could restore.
  void release(std::span<const std::byte> part) const;
  // Hints that these bytes will be read soon. The system starts to read them, and the call does not wait.
  void prefetch(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;
  static std::shared_ptr<MappedFile> map(const std::string& path, std::size_t size, int fd);
  std::string path_;
  std::span<const std::byte> bytes_;
  bool mapped_ = false, owned_ = false;  // mapped_: from a file; owned_: unmapped by the destructor
};

}  // namespace lc
#include "lightcone/macros_on.h"
