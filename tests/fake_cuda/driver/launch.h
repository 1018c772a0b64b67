// Launches as the driver's functions describe them.
#pragma once
#include "driver/driver.h"

namespace fake_cuda {

struct LaunchShape {
  LcDim3 grid, block;
  unsigned dynamic_shared;
  bool overlaps = false;  // with the launch before it
};

// Checks the shape against the device's and the kernel's limits; arguments by pointers to each, or packed as `extra`
// says.
Code make_launch(Driver& d, const void* function, const LaunchShape& shape, void* const* parameters, void* const* extra,
                 Launch& out);

// Of the device (context_api.cpp).
int device_attribute(int attribute);

}  // namespace fake_cuda
