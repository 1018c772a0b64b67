#include "lightcone/backends/cpu/jit/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "lightcone/base/error.h"
#include "lightcone/cache/descriptor.h"

namespace lc::backends::cpu {
namespace {

// Model and feature flags of the first core from /proc/cpuinfo; "" if they are not listed.
std::string processor() {
  const cache::Descriptor file(cache::uninterrupted([] { return ::open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC); }));
  std::string text = "\n";
  for (std::array<char, 4096> piece; file;) {
    const ssize_t n = cache::uninterrupted(
        [&] { return ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(text.size() - 1)); });
    if (n <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(n));
    for (const char* name : {"\nflags", "\nFeatures"}) {
      const std::size_t at = text.find(name), end = text.find('\n', at == std::string::npos ? at : at + 1);
      if (end == std::string::npos) continue;
      const std::size_t model = std::min(text.find("\nmodel name"), at);
      return text.substr(model, text.find('\n', model + 1) - model) + text.substr(at, end - at);
    }
  }
  return "";
}

}  // namespace

std::string identity(const std::string& compiler) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(compiler.c_str(), nullptr), std::free);
  struct stat s {};
  if (!real || ::stat(real.get(), &s) != 0) return "";
  std::string id = str_cat(real.get(), " ", s.st_size, " ", s.st_mtim.tv_sec, ".", s.st_mtim.tv_nsec);
  const std::string cpu = processor();
  return cpu.empty() ? "" : id + cpu;
}

}  // namespace lc::backends::cpu
