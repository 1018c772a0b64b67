#include "lightcone/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lightcone/core/error.h"

namespace lc {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw Error("load", cat("cannot open '", path, "': ", std::strerror(errno)));
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  struct stat s = {};
  if (::fstat(fd, &s) != 0) throw Error("load", cat("cannot read '", path, "': ", std::strerror(errno)));
  if (S_ISDIR(s.st_mode)) throw Error("load", cat("'", path, "' is a directory"));
  if (!S_ISREG(s.st_mode)) throw Error("load", cat("'", path, "' is not a regular file"));
  if (s.st_size == 0) throw Error("load", cat("'", path, "' is empty"));
  const auto size = static_cast<std::size_t>(s.st_size);
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED) throw Error("load", cat("cannot map '", path, "': ", std::strerror(errno)));
  std::shared_ptr<MappedFile> f(new MappedFile);
  f->path_ = path;
  f->bytes_ = {static_cast<const std::byte*>(p), size};
  f->mapped_ = true;
  return f;
}

std::shared_ptr<const MappedFile> MappedFile::view(std::string name, std::span<const std::byte> bytes) {
  std::shared_ptr<MappedFile> f(new MappedFile);
  f->path_ = std::move(name);
  f->bytes_ = bytes;
  return f;
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (!mapped_) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace lc
