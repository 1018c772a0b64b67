// A file mapped into memory, read-only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace lc {

class MappedFile {
 public:
  // Error when the file is missing, not readable, not a regular file, or empty.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // Bytes that are already in memory (a model built into a program); they must outlive the object.
  static std::shared_ptr<const MappedFile> view(std::string name, std::span<const std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  // These bytes will not be read soon: their memory goes back to the system, and is filled from the
  // file again if they are.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;
  std::string path_;
  std::span<const std::byte> bytes_;
  bool mapped_ = false;
};

}  // namespace lc
