// A file descriptor that closes itself, and reads and writes that no signal cuts short.
#pragma once

#include <csignal>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lc::cache {

// A system call again for as long as a signal interrupts it.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;)
    if (const auto result = call(); result != -1 || errno != EINTR) return result;
}

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
  // False when what was written may not have arrived.
  bool close();

 private:
  int fd_ = -1;
};

// While it lives, a file that this thread would make larger than the process may (ulimit -f) is an error of the call,
// EFBIG, and no SIGXFSZ, which ends the process.
class NoSizeSignal {
 public:
  NoSizeSignal();
  ~NoSizeSignal();
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t before_;
  bool pending_;  // one of somebody else's
};

// From byte `offset` on; false, with errno, when not all of it was written.
bool write_all(int fd, std::string_view bytes, std::size_t offset = 0);
// From the first byte to the end; nothing, with errno, when that fails or is more than `limit`.
std::optional<std::string> read_all(int fd, std::size_t limit);

}  // namespace lc::cache
