// A temporary folder that exists as long as the object: an empty kernel cache.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "lightcone/base/error.h"

namespace lc::bench {

class TempDir {
 public:
  TempDir() : path_((std::filesystem::temp_directory_path() / "lightcone-bench-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) throw Error("bench", "cannot make a temporary folder");
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace lc::bench
