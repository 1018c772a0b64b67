// Collectives as kernels of a device: a communicator whose ranks have devices that exchange arrays by themselves makes
// them, and the collectives' composites offer them to compilers.
#pragma once

#include <memory>
#include <string>

#include "lightcone/core/dim.h"
#include "lightcone/core/dtype.h"
#include "lightcone/device/kernel.h"
#include "lightcone/distributed/exchange.h"

namespace lc::distributed {

class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;
  // Returns the device's name (KernelRule::device): "cuda".
  virtual std::string device() const = 0;
  // Returns the kernel of a collective of rows of `elements`, or null if the composite's definition should be computed.
  // Throws Error if the device cannot run the collective.
  virtual std::shared_ptr<Kernel> kernel(const Call& c, DType type, const Dim& elements) const = 0;
};

}  // namespace lc::distributed
