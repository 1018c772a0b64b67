// A cache of compiled kernels on disk. Its folder is writable only by its user. An entry's name is a cryptographic hash
// of everything it depends on, and a second hash seals its content.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lightcone/cache/descriptor.h"

namespace lc::cache {

struct CacheOptions {
  // "" means $LIGHTCONE_CACHE, else $XDG_CACHE_HOME/lightcone or ~/.cache/lightcone. "off" means no cache.
  std::string folder = "";
  std::size_t bytes = 0;  // size limit in bytes; 0: $LIGHTCONE_CACHE_SIZE, else 512 MB
};

// The cache. A failing cache is not an error: nothing is found in it, and nothing is stored.
class ObjectCache {
 public:
  ObjectCache() = default;  // stores nothing
  // Opens the folder once; all entries are accessed through it. Removes what killed processes left behind.
  explicit ObjectCache(const CacheOptions& options);

  explicit operator bool() const { return bool(folder_); }
  // Returns why a requested cache stores nothing, as a sentence, or "".
  const std::string& problem() const { return problem_; }

  // Returns the name of an object that depends on these parts. The suffix is ".so", ".o", ".cubin", ".clbin" or
  // ".choice"; trim() ignores entries with another one.
  std::string name(std::initializer_list<std::string_view> parts, std::string_view suffix) const;
  // Returns an entry, or "" if there is none. An entry that is damaged or not ours is removed.
  std::string find(const std::string& name) const;
  // Stores an entry atomically.
  void keep(const std::string& name, std::string_view object) const;
  // Removes an entry.
  void drop(const std::string& name) const;
  // Removes the least recently used entries until the others fit in the size limit.
  void trim() const;

 private:
  void sweep() const;

  Descriptor folder_;
  std::string problem_;
  std::size_t limit_ = 0;
};

}  // namespace lc::cache
