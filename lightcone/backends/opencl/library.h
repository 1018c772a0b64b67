// libOpenCL, loaded when it is first used: the loader that passes calls on to a machine's drivers. Nothing of it is
// needed to build.
#pragma once

#include <memory>
#include <string>

#include "lightcone/backends/opencl/api.h"

namespace lc::backends::opencl {

struct Library {
  std::string path;  // under which it was loaded
  api::Functions functions{};
};

// Loads the library from its path; "": from $LIGHTCONE_OPENCL, else the system's. It stays in the process until that
// ends. Throws Error if there is none, or if it is older than 1.2.
std::shared_ptr<const Library> load_library(const std::string& path);

}  // namespace lc::backends::opencl
