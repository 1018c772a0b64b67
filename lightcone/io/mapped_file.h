// The bytes of a file: mapped into memory, read-only, or a copy of them.
#pragma once

#include "lightcone/macros_off.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace lc {

class MappedFile {
 public:
  // Error when the file is missing, not readable, not a regular file, or empty.
  // A file that becomes shorter while it is mapped takes its pages away: reading them is a SIGBUS, which ends the
  // process. Where others may write to the file, read() it.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // The same, copied: nothing that happens to the file later matters. Error also when it has more than `limit` bytes.
  static std::shared_ptr<const MappedFile> read(const std::string& path,
                                                std::size_t limit = std::numeric_limits<std::size_t>::max());
  // Bytes that are already in memory (a model built into a program); they must outlive the object.
  static std::shared_ptr<const MappedFile> view(std::string name, std::span<const std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  // These bytes will not be read soon: their memory goes back to the system, and is filled from the
  // file again if they are. (A copy stays: nothing could fill it.)
  void release(std::span<const std::byte> part) const;
  // These bytes will be read soon: the system begins to fetch them, and the call does not wait for it.
  void prefetch(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;
  static std::shared_ptr<MappedFile> map(const std::string& path, std::size_t size, int fd);
  std::string path_;
  std::span<const std::byte> bytes_;
  bool mapped_ = false, owned_ = false;  // from the file; by this object at all
};

}  // namespace lc
#include "lightcone/macros_on.h"
