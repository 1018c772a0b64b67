#include "failing_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

namespace failing {
namespace {

std::atomic<Fault> fault{Fault::None};
std::atomic<long> nth{0}, seen{0};

// Counts a call that can suffer `f`, and returns true if it is the armed one.
bool hit(Fault f) { return fault == f && ++seen == nth; }

// The faults that a call may suffer besides SIGKILL and EIO.
struct Suffers {
  bool interrupted = false, no_space = false;
  int resources = 0;  // the errno of Fault::Resources, or 0
};

// Returns zero, or the errno with which the call is to fail.
int error(const Suffers& s) {
  if (hit(Fault::Killed)) ::raise(SIGKILL);
  if (s.interrupted && hit(Fault::Interrupted)) return EINTR;
  if (s.no_space && hit(Fault::NoSpace)) return ENOSPC;
  if (hit(Fault::InputOutput)) return EIO;
  if (s.resources && hit(Fault::Resources)) return s.resources;
  return 0;
}
template <class R>
R after(R result) {
  const int saved = errno;
  if (hit(Fault::Killed)) ::raise(SIGKILL);
  errno = saved;
  return result;
}
template <class Call>
auto guarded(const Suffers& s, const Call& call, decltype(call()) failed = -1) {
  if (const int e = error(s)) {
    errno = e;
    return failed;
  }
  return after(call());
}

}  // namespace

const char* name(Fault f) {
  constexpr const char* names[] = {"none", "EINTR", "ENOSPC", "EIO", "no resources", "short", "SIGKILL"};
  return names[static_cast<int>(f)];
}
void arm(Fault f, long n) { fault = f, nth = n, seen = 0; }
long disarm() {
  fault = Fault::None;
  return seen;
}

}  // namespace failing

using namespace failing;

#define REAL(result, name, ...)      \
  result __real_##name(__VA_ARGS__); \
  result __wrap_##name(__VA_ARGS__)

extern "C" {

int __real_open(const char*, int, ...);
int __wrap_open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return guarded({.interrupted = true, .no_space = (flags & O_CREAT) != 0, .resources = EMFILE},
                 [&] { return __real_open(path, flags, mode); });
}
int __real_openat(int, const char*, int, ...);
int __wrap_openat(int folder, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return guarded({.interrupted = true, .no_space = (flags & O_CREAT) != 0, .resources = EMFILE},
                 [&] { return __real_openat(folder, path, flags, mode); });
}
int __real_fcntl(int, int, ...);
int __wrap_fcntl(int fd, int command, ...) {
  std::va_list rest;
  va_start(rest, command);
  const long argument = va_arg(rest, long);
  va_end(rest);
  return guarded({.resources = EMFILE}, [&] { return __real_fcntl(fd, command, argument); });
}

REAL(ssize_t, read, int fd, void* to, std::size_t size) {
  if (size > 1 && hit(Fault::Short)) size /= 2;
  return guarded({.interrupted = true}, [&] { return __real_read(fd, to, size); });
}
REAL(ssize_t, pread, int fd, void* to, std::size_t size, off_t at) {
  if (size > 1 && hit(Fault::Short)) size = 3;  // less than any read of the library
  return guarded({.interrupted = true}, [&] { return __real_pread(fd, to, size, at); });
}
REAL(ssize_t, write, int fd, const void* from, std::size_t size) {
  if (size > 1 && hit(Fault::Short)) size /= 2;
  return guarded({.interrupted = true, .no_space = true}, [&] { return __real_write(fd, from, size); });
}
REAL(ssize_t, pwrite, int fd, const void* from, std::size_t size, off_t at) {
  if (size > 1 && hit(Fault::Short)) size /= 2;
  if (hit(Fault::Killed)) {
    [[maybe_unused]] const ssize_t half = __real_pwrite(fd, from, size / 2, at);
    ::raise(SIGKILL);
  }
  return guarded({.interrupted = true, .no_space = true}, [&] { return __real_pwrite(fd, from, size, at); });
}
// close() releases the descriptor even if it reports an error, as Linux does.
REAL(int, close, int fd) {
  const int e = error({.interrupted = true, .no_space = true});
  const int result = __real_close(fd);
  if (e) errno = e;
  return after(e ? -1 : result);
}
REAL(int, fstat, int fd, struct stat* s) {
  return guarded({.resources = ENOMEM}, [&] { return __real_fstat(fd, s); });
}
REAL(int, stat, const char* path, struct stat* s) {
  return guarded({.resources = ENOMEM}, [&] { return __real_stat(path, s); });
}
REAL(int, fstatat, int folder, const char* path, struct stat* s, int flags) {
  return guarded({.resources = ENOMEM}, [&] { return __real_fstatat(folder, path, s, flags); });
}
REAL(int, mkdir, const char* path, mode_t mode) {
  return guarded({.no_space = true}, [&] { return __real_mkdir(path, mode); });
}
REAL(int, renameat, int a, const char* from, int b, const char* to) {
  return guarded({.no_space = true}, [&] { return __real_renameat(a, from, b, to); });
}
REAL(int, unlinkat, int folder, const char* path, int flags) {
  return guarded({}, [&] { return __real_unlinkat(folder, path, flags); });
}
REAL(int, futimens, int fd, const struct timespec* times) {
  return guarded({.no_space = true}, [&] { return __real_futimens(fd, times); });
}
REAL(int, flock, int fd, int operation) {
  return guarded({.interrupted = true, .resources = ENOLCK}, [&] { return __real_flock(fd, operation); });
}
REAL(int, memfd_create, const char* name, unsigned flags) {
  return guarded({.no_space = true, .resources = EMFILE}, [&] { return __real_memfd_create(name, flags); });
}
REAL(void*, mmap, void* at, std::size_t size, int protection, int flags, int fd, off_t offset) {
  return guarded(
      {.resources = ENOMEM}, [&] { return __real_mmap(at, size, protection, flags, fd, offset); }, MAP_FAILED);
}
REAL(pid_t, waitpid, pid_t pid, int* status, int options) {
  return guarded({.interrupted = true}, [&] { return __real_waitpid(pid, status, options); });
}
REAL(int, posix_spawn, pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
     const posix_spawnattr_t* attributes, char* const* argv, char* const* environment) {
  if (const int e = error({.resources = EAGAIN})) return e;
  return after(__real_posix_spawn(pid, path, actions, attributes, argv, environment));
}
REAL(void*, dlopen, const char* path, int mode) {
  return after(__real_dlopen(error({.resources = ENOMEM}) ? "/nonexistent" : path, mode));
}
REAL(DIR*, fdopendir, int fd) {
  return guarded(
      {.resources = ENOMEM}, [&] { return __real_fdopendir(fd); }, nullptr);
}
REAL(struct dirent*, readdir, DIR* files) {
  return guarded(
      {}, [&] { return __real_readdir(files); }, nullptr);
}

}  // extern "C"
