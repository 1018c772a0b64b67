// Launches as the driver's functions describe them.
#pragma once
#include "driver/driver.h"

namespace lc::simulators::cuda {

struct LaunchShape {
  LcDim3 grid, block;
  unsigned dynamic_shared;
  bool overlaps = false;  // may start before the previous launch has ended
};

// Checks the shape against the limits of the device and the kernel. Arguments are pointers in `parameters`, or packed
// as described by `extra`.
Code make_launch(Driver& d, const void* function, const LaunchShape& shape, void* const* parameters, void* const* extra,
                 Launch& out);

// Returns a device attribute (context_api.cpp).
int device_attribute(int attribute);

}  // namespace lc::simulators::cuda
