// The host as a device: its memory is where everyone can reach it, its kernels are functions, and small ones that do
// not depend on each other share a fork.
#pragma once

#include <memory>

#include "lightcone/device/device.h"

namespace lc {

std::shared_ptr<Device> host_device(std::shared_ptr<Parallel> parallel = one_thread());

}  // namespace lc
