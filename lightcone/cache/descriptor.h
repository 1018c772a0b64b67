// A file descriptor that closes itself, and reads and writes that signals do not interrupt.
#pragma once

#include <csignal>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lc::cache {

// Repeats a system call as long as a signal interrupts it.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;)
    if (const auto result = call(); result != -1 || errno != EINTR) return result;
}

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Closes the descriptor. Returns false if what was written may not have arrived.
  bool close();

 private:
  int fd_ = -1;
};

// While it lives, exceeding the process's file size limit (ulimit -f) makes a call of this thread fail with EFBIG
// instead of raising SIGXFSZ, which would end the process.
class NoSizeSignal {
 public:
  NoSizeSignal();
  ~NoSizeSignal();
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t before_;
  bool pending_;  // a SIGXFSZ was pending already
};

// Writes all bytes from byte `offset` of the file on. Returns false, with errno set, if not all of it was written.
bool write_all(int fd, std::string_view bytes, std::size_t offset = 0);
// Reads the whole file. Returns nullopt, with errno set, if that fails or the file has more than `limit` bytes.
std::optional<std::string> read_all(int fd, std::size_t limit);

}  // namespace lc::cache
