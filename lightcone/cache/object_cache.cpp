#include "lightcone/cache/object_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"
#include "lightcone/cache/sha256.h"

namespace lc::cache {
namespace {

constexpr std::size_t kLargest = 64u << 20;      // bytes of an entry; real objects are far smaller
constexpr std::size_t kUsualLimit = 512u << 20;  // bytes, some ten thousand objects
constexpr std::string_view kTemporary = ".tmp";  // suffix of a file that is being written

// Returns the size limit in bytes, parsed from text such as "512M".
std::size_t size_limit(const CacheOptions& o) {
  if (o.bytes) return o.bytes;
  const std::string wish = env("LIGHTCONE_CACHE_SIZE");
  if (wish.empty()) return kUsualLimit;
  std::size_t n = 0;
  const char* const end = wish.data() + wish.size();
  const auto [rest, error] = std::from_chars(wish.data(), end, n);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit.empty() ? 0 : -1;
  if (error != std::errc() || shift < 0 || n > (~std::size_t{0} >> shift))
    throw Error("cache", str_cat("LIGHTCONE_CACHE_SIZE is '", wish,
                                 "': give a number of bytes, or one with K, M or G, like 512M"));
  return n << shift;
}

struct CacheFolder {
  std::string folder;       // "": no cache
  std::size_t parents = 0;  // length of the prefix that must exist already
  bool named = false;       // chosen by the user
};
CacheFolder place(const CacheOptions& o) {
  const std::string wish = o.folder.empty() ? env("LIGHTCONE_CACHE") : o.folder;
  if (wish == "off") return {};
  if (!wish.empty()) return {wish, 0, true};
  if (const std::string xdg = env("XDG_CACHE_HOME"); !xdg.empty()) return {xdg + "/lightcone"};
  const std::string home = env("HOME");
  return home.empty() ? CacheFolder{} : CacheFolder{home + "/.cache/lightcone", home.size() + 1};
}

// Opens the folder. A missing home is not created; a folder chosen by the user is created with its parents.
Descriptor open_folder(const CacheFolder& p, std::string& problem) {
  const std::string& dir = p.folder;
  for (std::size_t k = std::max<std::size_t>(p.parents, 1); k <= dir.size(); ++k)
    if (k == dir.size() || dir[k] == '/') ::mkdir(dir.substr(0, k).c_str(), 0700);
  Descriptor d(uninterrupted([&] { return ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
  struct stat s {};
  if (!d || ::fstat(d.get(), &s) != 0) problem = str_cat("the folder cannot be opened: ", std::strerror(errno));
  else if (s.st_uid != ::geteuid()) problem = "the folder belongs to another user";
  else if (s.st_mode & 022) problem = "others may write to the folder";
  else return d;
  return {};
}

// Names of our files: a hash, a suffix, and more characters while the file is being written.
constexpr std::string_view kSuffixes[] = {".so", ".o", ".cubin", ".clbin", ".choice"};
bool is_ours(std::string_view name) {
  const std::size_t digits = std::min(name.find_first_not_of("0123456789abcdef"), name.size());
  name.remove_prefix(digits);
  return digits >= 32 && std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                                     [&](std::string_view s) { return name.starts_with(s); });
}
bool is_entry(std::string_view name) {
  return is_ours(name) &&
         std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [&](std::string_view s) { return name.ends_with(s); });
}

// Calls `see` with the name of each of our files.
template <class See>
void each_file(const Descriptor& folder, const See& see) {
  const int fd = uninterrupted([&] { return ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> files(::fdopendir(fd), ::closedir);
  if (!files) {
    ::close(fd);
    return;
  }
  while (const dirent* e = ::readdir(files.get()))
    if (is_ours(e->d_name)) see(std::string(e->d_name));
}

void remove(const Descriptor& folder, const std::string& name) {
  if (::unlinkat(folder.get(), name.c_str(), 0) != 0 && errno == EISDIR)
    ::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR);
}

Descriptor open_entry(const Descriptor& folder, const std::string& name, int access) {
  return Descriptor(uninterrupted(
      [&] { return ::openat(folder.get(), name.c_str(), access | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); }));
}

std::string seal(const std::string& name, std::string_view object) { return Sha256().add(name).add(object).hex(); }

}  // namespace

ObjectCache::ObjectCache(const CacheOptions& o) {
  limit_ = size_limit(o);
  const CacheFolder p = place(o);
  if (p.folder.empty()) return;
  std::string why;
  if (!Sha256::available()) why = "neither libmd (libmd.so.0) nor OpenSSL (libcrypto.so.3) is there to hash them with";
  else folder_ = open_folder(p, why);
  if (folder_) sweep();
  else if (p.named || !Sha256::available())
    problem_ = str_cat("compiled kernels are not kept in '", p.folder, "': ", why);
}

// Removes temporary files whose writer is gone: writers hold a lock.
void ObjectCache::sweep() const {
  each_file(folder_, [&](const std::string& name) {
    if (is_entry(name)) return;
    const Descriptor d = open_entry(folder_, name, O_RDWR);
    if (d && ::flock(d.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
    remove(folder_, name);
  });
}

std::string ObjectCache::name(std::initializer_list<std::string_view> parts, std::string_view suffix) const {
  if (!folder_) return "";
  Sha256 h;
  for (std::string_view p : parts) h.add(p);
  return h.hex().append(suffix);
}

std::string ObjectCache::find(const std::string& name) const {
  if (!folder_) return "";
  const Descriptor d = open_entry(folder_, name, O_RDONLY);
  struct stat s {};
  if (!d) {
    if (errno == ELOOP || errno == ENXIO) drop(name);
    return "";
  }
  if (::fstat(d.get(), &s) != 0) return "";
  const bool ours = S_ISREG(s.st_mode) && s.st_uid == ::geteuid() && !(s.st_mode & 022) &&
                    s.st_size > static_cast<off_t>(Sha256::kDigits) && s.st_size <= static_cast<off_t>(kLargest);
  if (!ours) {
    drop(name);
    return "";
  }
  std::optional<std::string> entry = read_all(d.get(), kLargest);
  if (!entry) return "";  // another read may succeed
  const std::size_t size = entry->size() < Sha256::kDigits ? 0 : entry->size() - Sha256::kDigits;
  const std::string sealed = entry->substr(size);
  entry->resize(size);
  if (seal(name, *entry) != sealed) {
    drop(name);
    return "";
  }
  ::futimens(d.get(), nullptr);  // marks it as recently used
  return std::move(*entry);
}

void ObjectCache::keep(const std::string& name, std::string_view object) const {
  if (!folder_ || object.empty() || object.size() > std::min(kLargest, limit_)) return;
  static std::atomic<unsigned> counter{0};
  const std::string temp = str_cat(name, ".", ::getpid(), "-", counter++, kTemporary);
  Descriptor d(uninterrupted(
      [&] { return ::openat(folder_.get(), temp.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600); }));
  if (!d) return;
  // The lock during the write tells other processes that the file is not a leftover.
  const bool whole = ::flock(d.get(), LOCK_EX | LOCK_NB) == 0 && write_all(d.get(), object) &&
                     write_all(d.get(), seal(name, object), object.size());
  if (!whole || ::renameat(folder_.get(), temp.c_str(), folder_.get(), name.c_str()) != 0) remove(folder_, temp);
  else if (!d.close()) drop(name);
}

void ObjectCache::drop(const std::string& name) const {
  if (folder_) remove(folder_, name);
}

void ObjectCache::trim() const {
  if (!folder_) return;
  std::vector<std::tuple<time_t, long, std::size_t, std::string>> entries;  // last use, size, name
  std::size_t all = 0;
  each_file(folder_, [&](const std::string& name) {
    struct stat s {};
    if (!is_entry(name) || ::fstatat(folder_.get(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return;
    const auto size = static_cast<std::size_t>(s.st_size);
    all += size;
    entries.emplace_back(s.st_mtim.tv_sec, s.st_mtim.tv_nsec, size, name);
  });
  if (all <= limit_) return;
  std::sort(entries.begin(), entries.end());
  for (const auto& [seconds, nanoseconds, size, name] : entries) {
    if (all <= limit_) return;
    remove(folder_, name);
    all -= size;
  }
}

}  // namespace lc::cache
