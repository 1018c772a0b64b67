// Runs the threads of a grid, block after block, as fibers on one thread of the system. A thread runs until it waits at
// a barrier or for its warp, or returns; one that never waits costs no switch at all. Whoever calls holds a lock: there
// is one scheduler.
#pragma once
#include <string>

#include "shim/kernel_interface.h"

namespace fibers {

// In which order blocks, warps and lanes begin. A right kernel gives the same bits in each.
constexpr long kForward = 0, kReverse = 1;  // any other number: shuffled by it

struct Grid {
  LcDim3 blocks, threads;
  unsigned dynamic_shared = 0;  // bytes
  long order = kForward;
  bool overlaps = false;  // it may begin before the grid in front of it has ended: its threads wait for that
};

enum class Fault { kNone, kAddress, kMisaligned, kFailed };

struct Outcome {
  Fault fault = Fault::kNone;
  std::string words;  // the kernel, the thread and what it did
};

Outcome run_grid(const LcModule& module, const LcKernel& kernel, void* const* arguments, const Grid& grid);

// How often a fiber was left for another, in all.
unsigned long switches();

}  // namespace fibers
