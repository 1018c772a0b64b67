#include "lightcone/backends/cpu/object_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lightcone/core/error.h"

namespace lc::host {
namespace {

// Two independent multiplicative mixes: a content hash, not a defence; the cache folder is ours.
struct Hash {
  std::uint64_t a = 0x9e3779b97f4a7c15ull, b = 0xc2b2ae3d27d4eb4full;
  void add(std::string_view s) {
    for (unsigned char c : s) {
      a = (a ^ c) * 0x100000001b3ull;
      b = (b + c) * 0xff51afd7ed558ccdull;
      b ^= b >> 29;
    }
    a ^= s.size() + (a >> 31);
  }
  std::string hex() const {
    char t[33];
    std::snprintf(t, sizeof t, "%016llx%016llx", static_cast<unsigned long long>(a),
                  static_cast<unsigned long long>(b));
    return t;
  }
};

std::string read_file(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  std::ostringstream s;
  s << f.rdbuf();
  return f ? std::move(s).str() : "";
}

// An entry is the object followed by its own checksum, so that a torn or edited file is not loaded.
std::string sealed(const std::string& object) {
  Hash h;
  h.add(object);
  return object + h.hex();
}
bool unseal(std::string& entry) {
  if (entry.size() < 64) return false;
  const std::string seal = entry.substr(entry.size() - 32);
  entry.resize(entry.size() - 32);
  Hash h;
  h.add(entry);
  return h.hex() == seal;
}

}  // namespace

std::string env(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

std::string content_hash(std::initializer_list<std::string_view> parts) {
  Hash h;
  for (std::string_view p : parts) h.add(p);
  return h.hex();
}

std::string identity(const std::string& compiler) {
  struct stat s {};
  std::string id = compiler;
  if (char* real = ::realpath(compiler.c_str(), nullptr)) {
    id = real;
    std::free(real);
  }
  if (::stat(id.c_str(), &s) == 0) id += cat(" ", s.st_size, " ", s.st_mtime);
  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; std::getline(cpu, line);)
    if (line.rfind("model name", 0) == 0 || line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0) {
      id += line;
      if (line.rfind("model", 0) != 0) break;
    }
  return id;
}

std::string cache_folder(const JitOptions& o) {
  std::string dir = o.cache_dir.empty() ? env("LIGHTCONE_CACHE") : o.cache_dir;
  if (dir == "off") return "";
  std::size_t parents = 0;  // characters of what must exist already
  if (dir.empty()) {
    const std::string xdg = env("XDG_CACHE_HOME"), home = env("HOME");
    if (!xdg.empty()) dir = xdg + "/lightcone";
    else if (!home.empty()) dir = home + "/.cache/lightcone", parents = home.size() + 1;
    else return "";
  }
  // A home that is not there stays so; a folder named on purpose is made with all that leads to it.
  for (std::size_t k = std::max<std::size_t>(parents, 1); k <= dir.size(); ++k)
    if (k == dir.size() || dir[k] == '/') ::mkdir(dir.substr(0, k).c_str(), 0700);
  struct stat s {};
  if (::lstat(dir.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != ::geteuid() || (s.st_mode & 022)) return "";
  return dir;
}

std::string kept_object(const std::string& folder, const std::string& name) {
  std::string object = folder.empty() ? "" : read_file(folder + "/" + name);
  return unseal(object) ? object : "";
}

void keep_object(const std::string& folder, const std::string& name, const std::string& object) {
  if (folder.empty()) return;
  const std::string path = folder + "/" + name;
  const std::string temp = path + "." + std::to_string(::getpid());
  const std::string bytes = sealed(object);
  const int fd = ::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;  // a cache that cannot be written is no error
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  ::close(fd);
  if (done != bytes.size() || ::rename(temp.c_str(), path.c_str()) != 0) ::unlink(temp.c_str());
}

}  // namespace lc::host
