// The interface between the scheduler, which runs the threads of a grid as fibers, and kernels compiled for the CPU. It
// is about threads, warps and blocks and independent of CUDA, so other kernel languages can use it. It has no includes,
// because thousands of kernels are compiled.
#pragma once

struct LcDim3 {
  unsigned x, y, z;
};

struct LcThread {
  LcDim3 index;
  unsigned lane, warp;
};

// Called by the last lane that arrives, for all of them: lanes[i] is the argument of lane i, or null if lane i does not
// take part.
typedef void (*LcExchange)(void* const* lanes);

struct LcScheduler {
  const LcThread* thread;  // the running thread; it may differ after each call below
  LcDim3 block_index, block_size, grid_size;
  void* dynamic_shared;
  // `place` is the line in the text: threads of a block that meet at different lines are a fault.
  void (*block_barrier)(unsigned place);
  void (*warp_exchange)(unsigned mask, void* mine, LcExchange exchange);
  void (*full_warp_exchange)(void* mine, LcExchange exchange);  // faults unless all 32 lanes are active
  // Copies to shared memory. Their bytes arrive only when they are waited for.
  void (*copy_async)(void* shared, const void* from, unsigned bytes);
  void (*copy_commit)();
  void (*copy_wait)(unsigned groups);  // waits for all but the latest `groups` committed ones
  // Phases are eight bytes of shared memory. Copies of boxes complete a phase. A box arrives only when no thread can
  // run without it.
  void (*phase_begin)(void* phase, unsigned arrivals);
  void (*phase_arrive)(void* phase, unsigned bytes);  // also adds `bytes` to the bytes expected
  void (*phase_wait)(void* phase, unsigned parity);
  void (*copy_tile)(void* shared, const void* map, void* phase, unsigned axes, const int* at);
  // Waits for the previous grid, which may not have ended. Every thread must call it.
  void (*wait_for_grid)();
  void (*fault)(const char* words);  // ends the grid; does not return
};

struct LcKernel {
  const char* name;
  void (*call)(void* const* arguments);
  const unsigned* sizes;       // sizes of the arguments in bytes
  const unsigned* alignments;  // alignments of the arguments in bytes
  unsigned arguments;
  unsigned max_threads;  // per block; 0 if the kernel does not state it
};

// The exported symbol of a compiled module, named lc_module.
struct LcModule {
  LcScheduler** scheduler;  // the module's variable that run() sets
  char *shared_begin, *shared_end;
  const LcKernel* kernels;
  unsigned kernel_count;
};
