#include "lightcone/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lightcone/io/printable.h"

namespace lc {

namespace {

// Quotes a path safely: it may come from another file, such as an index of shards.
std::string named(const std::string& path) { return "'" + printable(path, 500) + "'"; }

// An open regular file that is not empty.
struct Opened {
  int fd = -1;
  std::size_t size = 0;
  explicit Opened(const std::string& path) {
    do fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);  // on a slow file system a signal may interrupt the wait
    if (fd < 0) throw Error("load", str_cat("cannot open ", named(path), ": ", std::strerror(errno)));
    try {
      check(path);
    } catch (...) {
      ::close(fd);
      throw;
    }
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { ::close(fd); }

 private:
  void check(const std::string& path) {
    struct stat s = {};
    if (::fstat(fd, &s) != 0) throw Error("load", str_cat("cannot read ", named(path), ": ", std::strerror(errno)));
    if (S_ISDIR(s.st_mode)) throw Error("load", str_cat(named(path), " is a directory"));
    if (!S_ISREG(s.st_mode)) throw Error("load", str_cat(named(path), " is not a regular file"));
    if (s.st_size == 0) throw Error("load", str_cat(named(path), " is empty"));
    size = static_cast<std::size_t>(s.st_size);
  }
};

}  // namespace

// Maps the file or, if there is no descriptor, anonymous memory.
std::shared_ptr<MappedFile> MappedFile::map(const std::string& path, std::size_t size, int fd) {
  const bool file = fd >= 0;
  void* p = ::mmap(nullptr, size, file ? PROT_READ : PROT_READ | PROT_WRITE,
                   file ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
  if (p == MAP_FAILED)
    throw Error("load", str_cat("cannot ", file ? "map " : "get memory for ", named(path), ": ", std::strerror(errno)));
  std::shared_ptr<MappedFile> f(new MappedFile);
  f->path_ = path;
  f->bytes_ = {static_cast<const std::byte*>(p), size};
  f->mapped_ = file;
  f->owned_ = true;
  return f;
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Opened file(path);
  return map(path, file.size, file.fd);
}

std::shared_ptr<const MappedFile> MappedFile::read(const std::string& path, std::size_t limit) {
  const Opened file(path);
  if (file.size > limit) throw Error("load", str_cat(named(path), " is too large: ", file.size, " bytes"));
  const auto copy = map(path, file.size, -1);
  auto* to = const_cast<std::byte*>(copy->bytes_.data());
  for (std::size_t done = 0; done < file.size;) {
    const ssize_t n = ::read(file.fd, to + done, file.size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error("load", str_cat("cannot read ", named(path), ": ", std::strerror(errno)));
    if (n == 0)
      throw Error("load", str_cat(named(path), " became shorter while it was read: ", done, " bytes of ", file.size));
    done += static_cast<std::size_t>(n);
  }
  return copy;
}

std::shared_ptr<const MappedFile> MappedFile::view(std::string name, std::span<const std::byte> bytes) {
  std::shared_ptr<MappedFile> f(new MappedFile);
  f->path_ = std::move(name);
  f->bytes_ = bytes;
  return f;
}

void MappedFile::prefetch(std::span<const std::byte> part) const {
  if (!mapped_ || part.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(part.data()), begin = at / page * page;
  ::madvise(reinterpret_cast<void*>(begin), at + part.size() - begin, MADV_WILLNEED);
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (!mapped_) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (owned_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace lc
