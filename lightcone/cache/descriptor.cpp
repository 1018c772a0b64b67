#include "lightcone/cache/descriptor.h"

#include <unistd.h>

#include <algorithm>

namespace lc::cache {

// Never closes twice: Linux releases the number even if close() reports a signal.
bool Descriptor::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || ::close(fd) == 0;
}

static sigset_t size_signal() {
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGXFSZ);
  return s;
}
static bool is_pending() {
  sigset_t s;
  return sigpending(&s) == 0 && sigismember(&s, SIGXFSZ) == 1;
}

NoSizeSignal::NoSizeSignal() : pending_(is_pending()) {
  const sigset_t mine = size_signal();
  pthread_sigmask(SIG_BLOCK, &mine, &before_);
}
NoSizeSignal::~NoSizeSignal() {
  const int error = errno;  // keep the call's errno
  if (const sigset_t mine = size_signal(); !pending_ && is_pending()) {
    int taken = 0;
    sigwait(&mine, &taken);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

bool write_all(int fd, std::string_view bytes, std::size_t offset) {
  const NoSizeSignal quiet;
  while (!bytes.empty()) {
    const ssize_t n =
        uninterrupted([&] { return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (n == 0) errno = EIO;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::size_t>(n);
  }
  return true;
}

std::optional<std::string> read_all(int fd, std::size_t limit) {
  constexpr std::size_t kPiece = 65536;
  std::string s;
  for (std::size_t done = 0;;) {
    s.resize(done + kPiece);
    const ssize_t n = uninterrupted([&] { return ::pread(fd, s.data() + done, kPiece, static_cast<off_t>(done)); });
    if (n < 0) return std::nullopt;
    done += static_cast<std::size_t>(n);
    if (done > limit) errno = EFBIG;
    if (done > limit) return std::nullopt;
    if (n == 0) {
      s.resize(done);
      return s;
    }
  }
}

}  // namespace lc::cache
