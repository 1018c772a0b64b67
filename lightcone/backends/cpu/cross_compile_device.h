// A host device for kernels of another processor: programs can be compiled, planned and inspected, but not run.
#pragma once

#include <memory>
#include <string>

#include "lightcone/device/device.h"

namespace lc::backends::cpu {

// Memory operations are the host's. launch() and record() throw an Error that names `target`, the processor the program
// was compiled for.
std::shared_ptr<Device> cross_compile_device(std::shared_ptr<Parallel> threads, std::string target);

}  // namespace lc::backends::cpu
