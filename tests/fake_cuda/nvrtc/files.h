// Files that live for one call.
#pragma once
#include <cstddef>
#include <string>

namespace fake_cuda {

// Under TMPDIR, /tmp by default; gone with its content at the end. Throws std::runtime_error where none can be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// False where that fails, also because `data` cannot be read.
bool write_file(const std::string& path, const void* data, std::size_t bytes);
bool read_file(const std::string& path, std::string& out);

}  // namespace fake_cuda
