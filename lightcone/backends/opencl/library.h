// libOpenCL, loaded when it is first asked for: the loader that hands calls on to the drivers of a machine. Nothing of
// it is needed to build.
#pragma once

#include <memory>
#include <string>

#include "lightcone/backends/opencl/api.h"

namespace lc::backends::opencl {

struct Library {
  std::string path;  // as it was loaded
  api::Functions functions{};
};

// By its path; "": the one that the environment variable LIGHTCONE_OPENCL names, else the system's. It stays in the
// process until that ends. An Error where there is none, or an older one than 1.2.
std::shared_ptr<const Library> load_library(const std::string& path);

}  // namespace lc::backends::opencl
