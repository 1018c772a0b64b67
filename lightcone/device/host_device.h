// The host as a device: its memory is shared, its kernels are functions, and small independent kernels share a fork.
#pragma once

#include <memory>

#include "lightcone/device/device.h"

namespace lc {

// Returns a device that runs HostKernels on the given threads.
std::shared_ptr<Device> host_device(std::shared_ptr<Parallel> parallel = one_thread());

}  // namespace lc
