// Temporary files that live for one call.
#pragma once
#include <cstddef>
#include <string>

namespace lc::simulators::cuda {

// RAII: a folder under TMPDIR (/tmp by default), removed with its content. Throws std::runtime_error if it cannot be
// created.
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

// Returns false on failure, also if `data` cannot be read.
bool write_file(const std::string& path, const void* data, std::size_t bytes);
bool read_file(const std::string& path, std::string& out);

}  // namespace lc::simulators::cuda
