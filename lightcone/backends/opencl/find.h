// The devices of a machine, as OpenCL lists them.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/opencl/library.h"
#include "lightcone/backends/opencl/opencl.h"

namespace lc::backends::opencl {

struct Found {
  api::Device* device = nullptr;
  api::Bits type = 0;
  DeviceInfo info;
};

// Returns all devices, in the order of devices().
std::vector<Found> find_devices(const Library& library, const OpenClOptions& options);

}  // namespace lc::backends::opencl
