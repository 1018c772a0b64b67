// What a compiled program of Metal has for the library: its one symbol is lc_metal_module.
#pragma once

#include "kernel_interface.h"

struct LcMetalKernel {
  LcKernel kernel;  // its `sizes` say in which slots its arguments lie: buffers, and behind them group memory
  char *shared_begin, *shared_end;
};
struct LcMetalModule {
  LcScheduler** scheduler;
  const LcMetalKernel* kernels;
  unsigned count;
};
