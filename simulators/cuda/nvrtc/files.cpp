#include "nvrtc/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace lc::simulators::cuda {

TemporaryFolder::TemporaryFolder() {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr && *parent != 0 ? parent : "/tmp") + "/fake_cuda_XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool write_file(const std::string& path, const void* data, std::size_t bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::write(file, static_cast<const char*>(data) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return ::close(file) == 0 && done == bytes;
}

bool read_file(const std::string& path, std::string& out) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  out.clear();
  char part[1 << 14];
  ssize_t n = 0;
  do {
    n = ::read(file, part, sizeof part);
    if (n > 0) out.append(part, static_cast<std::size_t>(n));
  } while (n > 0 || (n < 0 && errno == EINTR));
  ::close(file);
  return n == 0;
}

}  // namespace lc::simulators::cuda
