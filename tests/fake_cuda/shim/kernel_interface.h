// What lies between the scheduler, which runs the threads of a grid as fibers, and kernels compiled for the CPU. It
// knows of threads, warps and blocks, not of CUDA, so that other kernel languages can stand on it. It includes nothing:
// thousands of kernels are compiled.
#pragma once

struct LcDim3 {
  unsigned x, y, z;
};

struct LcThread {
  LcDim3 index;
  unsigned lane, warp;
};

// Called by the last lane that arrives, for all of them: lanes[i] is what lane i handed in, or null where lane i takes
// no part.
typedef void (*LcExchange)(void* const* lanes);

struct LcScheduler {
  const LcThread* thread;  // the one that runs now: read it anew behind each call below
  LcDim3 block_index, block_size, grid_size;
  void* dynamic_shared;
  // `place` in the text: threads of a block that meet at different ones are a fault.
  void (*block_barrier)(unsigned place);
  void (*warp_exchange)(unsigned mask, void* mine, LcExchange exchange);
  void (*full_warp_exchange)(void* mine, LcExchange exchange);  // a fault unless all 32 lanes are there
  // Copies into shared memory; their bytes arrive only when they are waited for.
  void (*copy_async)(void* shared, const void* from, unsigned bytes);
  void (*copy_commit)();
  void (*copy_wait)(unsigned groups);  // all but the latest `groups` that were committed
  // Phases in shared memory, of eight bytes each, and copies of boxes that end within one. Nothing of a box is there
  // before nobody can go on without it.
  void (*phase_begin)(void* phase, unsigned arrivals);
  void (*phase_arrive)(void* phase, unsigned bytes);  // and so many bytes more are expected
  void (*phase_wait)(void* phase, unsigned parity);
  void (*copy_tile)(void* shared, const void* map, void* phase, unsigned axes, const int* at);
  // Of a grid that may begin before the one in front of it has ended: every thread has to call it.
  void (*wait_for_grid)();
  void (*fault)(const char* words);  // ends the grid; does not return
};

struct LcKernel {
  const char* name;
  void (*call)(void* const* arguments);
  const unsigned* sizes;       // of its arguments
  const unsigned* alignments;  // likewise
  unsigned arguments;
  unsigned max_threads;  // a block, 0 where the kernel does not say
};

// The one symbol of a compiled module, by the name lc_module.
struct LcModule {
  LcScheduler** scheduler;  // where the module looks for it
  char *shared_begin, *shared_end;
  const LcKernel* kernels;
  unsigned kernel_count;
};
