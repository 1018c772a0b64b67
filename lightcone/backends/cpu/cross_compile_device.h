// The host for kernels of another processor: they are compiled and looked at, planned and counted, and not run.
#pragma once

#include <memory>
#include <string>

#include "lightcone/device/device.h"

namespace lc::backends::cpu {

// Memory is the host's; whoever launches or records gets an Error that names `target`, what was compiled for.
std::shared_ptr<Device> cross_compile_device(std::shared_ptr<Parallel> threads, std::string target);

}  // namespace lc::backends::cpu
