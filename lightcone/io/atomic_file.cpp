#include "lightcone/io/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "lightcone/cache/descriptor.h"
#include "lightcone/io/printable.h"

namespace lc::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBuffer = 256u << 10, kMostAtOnce = 1u << 30;

// Repeats a system call while signals interrupt it.
template <class Call>
auto uninterrupted(const Call& call) {
  decltype(call()) r;
  do r = call();
  while (r < 0 && errno == EINTR);
  return r;
}

// Opens a file with a descriptor above those of the standard streams. A program may have closed these, and its later
// output would go into the file.
Descriptor open_in(int folder, const char* name, int flags) {
  Descriptor d(uninterrupted([&] { return ::openat(folder, name, flags | O_CLOEXEC, 0666); }));
  if (!d || d.get() > STDERR_FILENO) return d;
  return Descriptor(::fcntl(d.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

// Locks a file that no other process has locked. Returns 0 or the system's error number.
int lock(const Descriptor& d) {
  return uninterrupted([&] { return ::flock(d.get(), LOCK_EX | LOCK_NB); }) == 0 ? 0 : errno;
}

std::string path_of(const Descriptor& d) { return str_cat("/proc/self/fd/", d.get()); }

// Returns a name that no other save of this process uses: process id and counter. A process with the same id on another
// machine may use the same name; then creation fails, and the next name is tried.
constexpr std::string_view kBegin = ".lightcone-", kEnd = ".tmp";
std::string fresh_name() {
  static std::atomic<std::uint64_t> next{0};
  return str_cat(kBegin, ::getpid(), "-", next++, kEnd);
}
bool is_fresh_name(std::string_view name) {
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() < kBegin.size() + kEnd.size()) return false;
  name.remove_prefix(kBegin.size()), name.remove_suffix(kEnd.size());
  return name.find_first_not_of("0123456789-") == name.npos;
}

// True if the open file is the regular file that now has this name.
bool is_named(const Descriptor& d, const Descriptor& folder, const char* name) {
  struct stat open = {}, named = {};
  return ::fstat(d.get(), &open) == 0 && ::fstatat(folder.get(), name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(named.st_mode) && open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

// Removes the temporary files of which no process holds the lock.
void remove_abandoned(const Descriptor& folder) {
  const int listed = ::fcntl(folder.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);  // closed by closedir()
  const std::unique_ptr<DIR, int (*)(DIR*)> files(listed < 0 ? nullptr : ::fdopendir(listed), ::closedir);
  if (!files) {
    if (listed >= 0) ::close(listed);
    return;
  }
  ::rewinddir(files.get());
  while (const dirent* e = ::readdir(files.get())) {
    if (!is_fresh_name(e->d_name)) continue;
    const Descriptor d(::openat(folder.get(), e->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (d && lock(d) == 0 && is_named(d, folder, e->d_name)) ::unlinkat(folder.get(), e->d_name, 0);
  }
}

}  // namespace

void Descriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

void remove_abandoned(const std::string& folder) noexcept {
  try {
    if (const Descriptor d = open_in(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY)) remove_abandoned(d);
  } catch (...) {  // out of memory: the files stay
  }
}

FolderLock::FolderLock(const std::string& op, const std::string& folder)
    : folder_(open_in(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY)) {
  if (!folder_) throw file_error(op, folder, "cannot open the folder: ", std::strerror(errno));
  if (lock(folder_) == EWOULDBLOCK)
    throw file_error(op, folder, "another process is at work in this folder: wait until it ends, or name another one");
}

AtomicFile::AtomicFile(std::string op, const std::string& path) : op_(std::move(op)), path_(path) {
  look_at_old(path);
  folder_ = open_in(AT_FDCWD, folder_name_.c_str(), O_RDONLY | O_DIRECTORY);
  if (!folder_) fail(str_cat("cannot open the folder ", in_quotes(folder_name_)));
  buffer_.reserve(kBuffer);
  remove_abandoned(folder_);
  create();
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void AtomicFile::fail(std::string_view what) const {
  const int reason = errno;
  throw file_error(op_, path_, what, ": ", std::strerror(reason));
}

// Finds the file to replace, following links, with its folder and its name.
void AtomicFile::look_at_old(const std::string& path) {
  if (path.find('\0') != path.npos) throw file_error(op_, path, "a path with a NUL in it names no file");
  std::error_code ec;
  fs::path target = path;
  if (fs::is_symlink(target, ec)) {
    target = fs::canonical(target, ec);
    if (ec) throw file_error(op_, path, "a link that leads to no file: ", ec.message());
  }
  struct stat s = {};
  if (::stat(target.c_str(), &s) == 0) {
    if (!S_ISREG(s.st_mode)) throw file_error(op_, path, "it exists and is not a regular file");
    mode_ = static_cast<int>(s.st_mode & 07777);
  } else if (errno != ENOENT) {
    fail("cannot look at it");
  }
  name_ = target.filename().string();
  if (name_.empty()) throw file_error(op_, path, "this names no file");
  folder_name_ = target.has_parent_path() ? target.parent_path().string() : ".";
}

// Creates a file without a name if the system supports that, so that even a killed process leaves nothing.
void AtomicFile::create() {
#ifdef O_TMPFILE
  file_ = open_in(folder_.get(), ".", O_TMPFILE | O_WRONLY);
  if (file_ && ::faccessat(AT_FDCWD, path_of(file_).c_str(), F_OK, 0) == 0) {
    lock(file_);
    return;
  }
#endif
  create_named();
}

void AtomicFile::create_named() {
  bool again;
  do {
    temporary_ = fresh_name();
    file_ = open_in(folder_.get(), temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW);
    // Between creation and lock, another process may have taken the file for an abandoned one.
    again = file_ ? lock(file_) == EWOULDBLOCK || !is_named(file_, folder_, temporary_.c_str()) : errno == EEXIST;
  } while (again);
  if (file_) return;
  temporary_.clear();
  fail(str_cat("cannot create a file in the folder ", in_quotes(folder_name_)));
}

void AtomicFile::name_it() {
  int r;
  do {
    temporary_ = fresh_name();
    r = ::linkat(AT_FDCWD, path_of(file_).c_str(), folder_.get(), temporary_.c_str(), AT_SYMLINK_FOLLOW);
  } while (r != 0 && errno == EEXIST);
  if (r == 0) return;
  temporary_.clear();
  fail("cannot give the new file a name");
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() > kBuffer) return write_through(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void AtomicFile::write_through(std::span<const std::byte> bytes) {
  const cache::NoSizeSignal quiet;
  while (!bytes.empty()) {
    const ssize_t n = uninterrupted(
        [&] { return ::write(file_.get(), bytes.data(), std::min<std::size_t>(bytes.size(), kMostAtOnce)); });
    if (n < 0) fail("cannot write it");
    if (n == 0) throw file_error(op_, path_, "cannot write it: the system takes no more bytes");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::commit() {
  flush();
  if (mode_ >= 0 && uninterrupted([&] { return ::fchmod(file_.get(), static_cast<mode_t>(mode_)); }) != 0)
    fail("cannot give the new file the rights of the old one");
  if (uninterrupted([&] { return ::fsync(file_.get()); }) != 0) fail("cannot force it to the disk");
  if (temporary_.empty()) name_it();
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0)
    fail("cannot put the new file in its place");
  temporary_.clear();
  // Some file systems cannot force folders to the disk and report EINVAL.
  if (uninterrupted([&] { return ::fsync(folder_.get()); }) != 0 && errno != EINVAL)
    fail("the new file is in its place, but its folder cannot be forced to the disk");
}

}  // namespace lc::io
