// NVIDIA's libraries, loaded when they are needed: the driver (libcuda), and NVRTC, which compiles kernels.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lightcone/backends/cuda/api.h"

namespace lc::backends::cuda {

class Context;

// Formats a version that a library reports: 12040 is "12.4".
std::string version_text(int version);
// Returns the names as they are, for the system's loader, and then each in the folders of a CUDA toolkit: $CUDA_HOME,
// $CUDA_PATH, and where NVIDIA's packages put it.
std::vector<std::string> with_toolkit_folders(const std::vector<std::string>& names);

class Driver {
 public:
  // Loads the driver from `path`; "": $LIGHTCONE_CUDA_DRIVER, else libcuda.so.1. Each library is loaded once a process
  // and stays. Throws Error if there is none or it is too old. The driver is not initialised yet.
  static std::shared_ptr<Driver> open(const std::string& path = "");

  const api::Driver& api() const { return api_; }
  int version() const { return version_; }
  // Returns a result in words: "out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)".
  std::string words(api::Result r) const;
  // Initialises the driver. Throws Error if it finds no device.
  void initialise() const;

  // A device's primary context, of which a process has one: see Context.
  struct Primary {
    std::weak_ptr<Context> context;
    std::atomic<bool> lost = false;  // the context must be reset before it is retained again
  };
  std::mutex mutex;  // guards the field below
  std::map<int, Primary> primaries;

 private:
  Driver() = default;
  api::Driver api_;
  int version_ = 0;
  std::string path_;
};

class Compiler {
 public:
  // Loads NVRTC from `path`; "": $LIGHTCONE_NVRTC, else libnvrtc.so of version 11.2 or newer, as the system finds it or
  // below $CUDA_HOME and $CUDA_PATH. Versions whose code the driver of `driver_version` can load come first (0: the
  // newest first). Throws Error if there is none.
  static std::shared_ptr<const Compiler> open(const std::string& path = "", int driver_version = 0);

  const api::Compiler& api() const { return api_; }
  int version() const { return version_; }
  // Returns its version and file, on which compiled code depends besides its text and the options.
  const std::string& identity() const { return identity_; }
  // Returns the numbers of the architectures that it compiles for, ascending: 75, 80, 90.
  const std::vector<int>& architectures() const { return architectures_; }

 private:
  Compiler() = default;
  api::Compiler api_;
  int version_ = 0;
  std::string identity_;
  std::vector<int> architectures_;
};

}  // namespace lc::backends::cuda
