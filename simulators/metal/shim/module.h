// The table of a compiled Metal program, exported as lc_metal_module.
#pragma once

#include "kernel_interface.h"

struct LcMetalKernel {
  LcKernel kernel;  // its `sizes` are the slots of its arguments: buffers first, then threadgroup memory
  char *shared_begin, *shared_end;
};
struct LcMetalModule {
  LcScheduler** scheduler;
  const LcMetalKernel* kernels;
  unsigned count;
};
