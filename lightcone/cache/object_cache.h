// Compiled kernels on disk: in a folder only we can write to, named by a cryptographic hash of all they depend on,
// each sealed with another of its content.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lightcone/cache/descriptor.h"

namespace lc::cache {

struct CacheOptions {
  std::string folder = "";  // "": $LIGHTCONE_CACHE, else $XDG_CACHE_HOME/lightcone or ~/.cache/lightcone; "off"
  std::size_t bytes = 0;    // that it may have; 0: $LIGHTCONE_CACHE_SIZE, else 512 MB
};

// A cache that fails is no error: nothing is found in it, and nothing is kept.
class ObjectCache {
 public:
  ObjectCache() = default;  // keeps nothing
  // The folder is opened once, and all entries through it. What killed processes left behind is removed.
  explicit ObjectCache(const CacheOptions& options);

  explicit operator bool() const { return bool(folder_); }
  // Why nothing is kept although it was asked for, as a sentence; "" otherwise.
  const std::string& problem() const { return problem_; }

  // The name of an object that depends on these parts; the suffix is ".so", ".o", ".cubin", ".clbin" or ".choice". With
  // another one it is kept until somebody drops it.
  std::string name(std::initializer_list<std::string_view> parts, std::string_view suffix) const;
  // "" when it is not there. What is there and not ours, or torn, is removed.
  std::string find(const std::string& name) const;
  void keep(const std::string& name, std::string_view object) const;
  void drop(const std::string& name) const;
  // Removes what was not used for the longest time until the rest is no larger than the bound.
  void trim() const;

 private:
  void sweep() const;

  Descriptor folder_;
  std::string problem_;
  std::size_t limit_ = 0;
};

}  // namespace lc::cache
