// NVIDIA's libraries, loaded when they are needed: the driver (libcuda) and NVRTC, which compiles kernels.
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

// Versions as the libraries give them, 12040 for 12.4.
std::string version_text(int version);
// The names as the system's loader looks for them, then each in the folders of a CUDA toolkit: $CUDA_HOME, $CUDA_PATH,
// and where NVIDIA's packages put it.
std::vector<std::string> with_toolkit_folders(const std::vector<std::string>& names);

class Driver {
 public:
  // "": $LIGHTCONE_CUDA_DRIVER, else libcuda.so.1. Once a process for each library, which then stays. An Error when
  // there is none, or one that is too old; it is not yet initialised.
  static std::shared_ptr<Driver> open(const std::string& path = "");

  const api::Driver& api() const { return api_; }
  int version() const { return version_; }
  // "out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)"
  std::string words(api::Result r) const;
  // An Error when it finds no device.
  void initialise() const;

  // A device's primary context, which a process has once: see Context.
  struct Primary {
    std::weak_ptr<Context> context;
    std::atomic<bool> lost = false;  // it is reset before it is retained again
  };
  std::mutex mutex;  // guards what follows
  std::map<int, Primary> primaries;

 private:
  Driver() = default;
  api::Driver api_;
  int version_ = 0;
  std::string path_;
};

class Compiler {
 public:
  // "": $LIGHTCONE_NVRTC, else libnvrtc.so of any version from 11.2 on, one that the driver's version can load code of
  // first (0: the newest), where the system finds it and below $CUDA_HOME and $CUDA_PATH. An Error when there is none.
  static std::shared_ptr<const Compiler> open(const std::string& path = "", int driver_version = 0);

  const api::Compiler& api() const { return api_; }
  int version() const { return version_; }
  // Its version and file: what compiled code depends on besides its text and the options.
  const std::string& identity() const { return identity_; }
  // Numbers of the architectures that it compiles for, ascending: 75, 80, 90.
  const std::vector<int>& architectures() const { return architectures_; }

 private:
  Compiler() = default;
  api::Compiler api_;
  int version_ = 0;
  std::string identity_;
  std::vector<int> architectures_;
};

}  // namespace lc::backends::cuda
